// SPDX-License-Identifier: MIT
#include <demi/host/gemm.hpp>

#include <cstddef>
#include <limits>
#include <memory_resource>
#include <string>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <utility>
#include <vector>

namespace {

using namespace demi;

host_context context_for(host_isa isa) { return {isa, nullptr, std::pmr::new_delete_resource()}; }

/// Runs one random product and counts wrong elements and touched padding.
template <class A, class B, class C>
std::size_t errors_of_random_product(const host_context& context, matrix_rng& rng, std::size_t rows,
                                     std::size_t columns, std::size_t depth) {
    const auto padding = [&] { return random_size(rng, 0, 3); };
    padded_matrix<A> a(rows, depth, random_layout(rng), padding());
    padded_matrix<B> b(depth, columns, random_layout(rng), padding());
    padded_matrix<C> c(rows, columns, random_layout(rng), padding());
    a.fill(rng);
    b.fill(rng);
    const float alphas[] = {1, 1, -0.5f, 0, 2.75f};
    const float betas[] = {0, 0, 1, -1.5f};
    const float alpha = alphas[rng() % 5];
    const float beta = betas[rng() % 4];
    if (beta != 0) c.fill(rng);  // otherwise it stays NaN
    const padded_matrix<C> old = c;
    detail::host_gemm(context, alpha, std::as_const(a).view(), std::as_const(b).view(), beta,
                      c.view(), no_epilogue{});
    return count_wrong<A, B, C>(alpha, std::as_const(a).view(), std::as_const(b).view(), beta,
                                old.view(), std::as_const(c).view()) +
           (c.padding_is_untouched() ? 0 : 1);
}

template <class A, class B, class C>
void check_random_products(std::size_t cases) {
    for (const host_isa isa : available_isas()) {
        matrix_rng rng(2026);
        std::size_t errors = 0;
        for (std::size_t i = 0; i < cases; ++i) {
            errors +=
                errors_of_random_product<A, B, C>(context_for(isa), rng, random_size(rng, 1, 70),
                                                  random_size(rng, 1, 70), random_size(rng, 0, 70));
        }
        CAPTURE(std::string(name(isa)));
        CHECK(errors == 0);
    }
}

}  // namespace

TEST_CASE("a product of floats is within the rounding errors of its sums in every layout") {
    check_random_products<float, float, float>(1000);
}

TEST_CASE("a product that spans many blocks is within the rounding errors of its sums") {
    const std::size_t shapes[][3] = {
        {1, 1, 5000},   {130, 33, 600}, {1100, 17, 30},  {1030, 20, 270}, {15, 1100, 40},
        {60, 530, 515}, {1, 300, 700},  {3, 200, 130},   {14, 530, 300},  {200, 1, 3000},
        {33, 31, 8200}, {40, 256, 300}, {50, 150, 2100}, {1, 600, 1100},  {7, 64, 1030}};
    for (const host_isa isa : available_isas()) {
        matrix_rng rng(7);
        std::size_t errors = 0;
        for (const auto& shape : shapes) {
            for (int repeat = 0; repeat < 3; ++repeat) {
                errors += errors_of_random_product<float, float, float>(
                    context_for(isa), rng, shape[0], shape[1], shape[2]);
            }
        }
        CAPTURE(std::string(name(isa)));
        CHECK(errors == 0);
    }
}

TEST_CASE("an element has the same bits in a product of many blocks and in a small one") {
    matrix_rng rng(31);
    padded_matrix<float16> b(1000, 270, layout::row_major, 1);
    b.fill(rng);
    for (const auto order : {layout::row_major, layout::column_major}) {
        padded_matrix<float16> a(1100, 1000, order, 2);
        a.fill(rng);
        for (const host_isa isa : available_isas()) {
            if (isa == host_isa::portable) continue;  // takes long, and has the same blocks
            padded_matrix<float> c(1100, 270, layout::row_major, 3);
            detail::host_gemm(context_for(isa), 1.0f, std::as_const(a).view(),
                              std::as_const(b).view(), 0.0f, c.view(), no_epilogue{});
            std::size_t different = c.padding_is_untouched() ? 0 : 1;
            for (const std::size_t row : {0u, 530u, 1047u, 1095u}) {
                const matrix_view<const float16> all = std::as_const(a).view();
                const matrix_view<const float16> rows(&all(row, 0), 5, 1000,
                                                      all.leading_dimension(), order);
                std::vector<float> alone(5 * 270);
                detail::host_gemm(context_for(isa), 1.0f, rows, std::as_const(b).view(), 0.0f,
                                  matrix_view<float>(alone.data(), 5, 270), no_epilogue{});
                for (std::size_t i = 0; i < alone.size(); ++i) {
                    if (alone[i] != c.view()(row + i / 270, i % 270)) ++different;
                }
            }
            CAPTURE(std::string(name(isa)));
            CHECK(different == 0);
        }
    }
}

TEST_CASE("a result of one column knows its rows and its old values") {
    const auto add_place = [](float value, matrix_position at) {
        return value + 1000.0f * static_cast<float>(at.column) + static_cast<float>(at.row);
    };
    for (const host_isa isa : available_isas()) {
        std::vector<float> a(90 * 40, 1.0f), b(40, 2.0f), c(90, 3.0f);
        detail::host_gemm(context_for(isa), 1.0f, matrix_view<const float>(a.data(), 90, 40),
                          matrix_view<const float>(b.data(), 40, 1), 2.0f,
                          matrix_view<float>(c.data(), 90, 1), add_place);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < c.size(); ++i) {
            if (c[i] != 86.0f + static_cast<float>(i)) ++wrong;
        }
        CAPTURE(std::string(name(isa)));
        CHECK(wrong == 0);
    }
}

TEST_CASE("NaN and infinity reach exactly the elements that depend on them") {
    for (const host_isa isa : available_isas()) {
        matrix_rng rng(11);
        std::size_t errors = 0;
        for (int i = 0; i < 200; ++i) {
            const std::size_t rows = random_size(rng, 1, 40);
            const std::size_t columns = random_size(rng, 1, 70);
            const std::size_t depth = random_size(rng, 1, 40);
            padded_matrix<float> a(rows, depth, random_layout(rng), 1);
            padded_matrix<float> b(depth, columns, random_layout(rng), 1);
            padded_matrix<float> clean(rows, columns, random_layout(rng), 1);
            a.fill(rng);
            b.fill(rng);
            padded_matrix<float> c = clean;
            const auto multiply = [&](padded_matrix<float>& into) {
                detail::host_gemm(context_for(isa), 1.0f, std::as_const(a).view(),
                                  std::as_const(b).view(), 0.0f, into.view(), no_epilogue{});
            };
            multiply(clean);
            const std::size_t row = random_size(rng, 0, rows - 1);
            const std::size_t k = random_size(rng, 0, depth - 1);
            const std::size_t zero = random_size(rng, 0, columns - 1);
            const bool infinite = rng() % 2 == 0;
            a.view()(row, k) = infinite ? std::numeric_limits<float>::infinity()
                                        : std::numeric_limits<float>::quiet_NaN();
            b.view()(k, zero) = 0;  // infinity times 0 is NaN: zeros must not be skipped
            multiply(c);
            for (std::size_t r = 0; r < rows; ++r) {
                for (std::size_t n = 0; n < columns; ++n) {
                    const float value = c.view()(r, n);
                    if (r == row) {
                        const bool nan = !infinite || n == zero;
                        errors += nan ? !is_nan(value) : !is_infinite(value);
                    } else if (n != zero) {
                        errors += !same_bits(value, clean.view()(r, n));
                    }
                }
            }
        }
        CAPTURE(std::string(name(isa)));
        CHECK(errors == 0);
    }
}

TEST_CASE("an infinity in the right operand reaches its column") {
    for (const host_isa isa : available_isas()) {
        std::vector<float16> a(5 * 3, float16(1.0f)), b(3 * 40, float16(0.5f));
        b[1 * 40 + 33] = float16::from_bits(0xfc00);
        std::vector<float> c(5 * 40);
        detail::host_gemm(context_for(isa), 1.0f, matrix_view<const float16>(a.data(), 5, 3),
                          matrix_view<const float16>(b.data(), 3, 40), 0.0f,
                          matrix_view<float>(c.data(), 5, 40), no_epilogue{});
        std::size_t errors = 0;
        for (std::size_t i = 0; i < c.size(); ++i) {
            errors += i % 40 == 33 ? to_bits(c[i]) != 0xff800000 : c[i] != 1.5f;
        }
        CAPTURE(std::string(name(isa)));
        CHECK(errors == 0);
    }
}

TEST_CASE("an empty inner dimension gives beta times the old matrix") {
    for (const host_isa isa : available_isas()) {
        std::vector<float> c(3 * 20, 2.0f);
        const matrix_view<const float> a(nullptr, 3, 0), b(nullptr, 0, 20);
        detail::host_gemm(context_for(isa), 5.0f, a, b, 1.5f, matrix_view<float>(c.data(), 3, 20),
                          no_epilogue{});
        CHECK(c == std::vector<float>(3 * 20, 3.0f));

        c.assign(3 * 20, std::numeric_limits<float>::quiet_NaN());
        detail::host_gemm(context_for(isa), 5.0f, a, b, 0.0f, matrix_view<float>(c.data(), 3, 20),
                          no_epilogue{});
        CHECK(c == std::vector<float>(3 * 20, 0.0f));
    }
}

TEST_CASE("an empty result asks for no memory") {
    const host_context context{detected_host_isa(), nullptr, std::pmr::null_memory_resource()};
    std::vector<float> operand(8, 1.0f);
    CHECK_NOTHROW(detail::host_gemm(context, 1.0f, matrix_view<const float>(nullptr, 0, 8),
                                    matrix_view<const float>(operand.data(), 8, 1), 0.0f,
                                    matrix_view<float>(nullptr, 0, 1), no_epilogue{}));
}

TEST_CASE("a refused allocation leaves the result as it was") {
    const host_context context{detected_host_isa(), nullptr, std::pmr::null_memory_resource()};
    const std::vector<float> operand(4, 1.0f);
    std::vector<float> c(4, 7.0f);
    const matrix_view<const float> view(operand.data(), 2, 2);
    CHECK_THROWS_AS(detail::host_gemm(context, 1.0f, view, view, 0.0f,
                                      matrix_view<float>(c.data(), 2, 2), no_epilogue{}),
                    out_of_memory);
    CHECK(c == std::vector<float>(4, 7.0f));
}

TEST_CASE("doubles are summed in double") {
    matrix_rng rng(5);
    std::size_t errors = 0;
    for (int i = 0; i < 100; ++i) {
        errors += errors_of_random_product<double, double, double>(
            context_for(detected_host_isa()), rng, random_size(rng, 1, 40),
            random_size(rng, 1, 300), random_size(rng, 0, 40));
    }
    CHECK(errors == 0);

    const std::vector<double> a{1.0, 0x1p-40}, b{1.0, 1.0};
    std::vector<double> c(1);
    detail::host_gemm(context_for(detected_host_isa()), 1.0f,
                      matrix_view<const double>(a.data(), 1, 2),
                      matrix_view<const double>(b.data(), 2, 1), 0.0f,
                      matrix_view<double>(c.data(), 1, 1), no_epilogue{});
    CHECK(c[0] == 1.0 + 0x1p-40);
}
