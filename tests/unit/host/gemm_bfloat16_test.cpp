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

template <class C>
void multiply(host_isa isa, const padded_matrix<bfloat16>& a, const padded_matrix<bfloat16>& b,
              padded_matrix<C>& c) {
    detail::host_gemm({isa, nullptr, std::pmr::new_delete_resource()}, 1.0f, a.view(), b.view(),
                      0.0f, c.view(), no_epilogue{});
}

/// The product of one row and one column.
float dot(host_isa isa, const std::vector<bfloat16>& a, const std::vector<bfloat16>& b) {
    float c = 7;
    detail::host_gemm({isa, nullptr, std::pmr::new_delete_resource()}, 1.0f,
                      matrix_view<const bfloat16>(a.data(), 1, a.size()),
                      matrix_view<const bfloat16>(b.data(), b.size(), 1), 0.0f,
                      matrix_view<float>(&c, 1, 1), no_epilogue{});
    return c;
}

void fill_with_integers(padded_matrix<bfloat16>& matrix, matrix_rng& rng) {
    for (std::size_t r = 0; r < matrix.view().rows(); ++r) {
        for (std::size_t n = 0; n < matrix.view().columns(); ++n) {
            matrix.view()(r, n) = bfloat16(static_cast<float>(rng() % 33) - 16.0f);
        }
    }
}

}  // namespace

TEST_CASE("sums of whole bfloat16 numbers are exact at every even and odd depth") {
    for (const host_isa isa : available_isas()) {
        matrix_rng rng(51);
        std::size_t wrong = 0;
        for (std::size_t depth = 1; depth <= 130; ++depth) {
            const std::size_t rows = random_size(rng, 1, 33);
            const std::size_t columns = random_size(rng, 1, 70);
            padded_matrix<bfloat16> a(rows, depth, random_layout(rng), random_size(rng, 0, 3));
            padded_matrix<bfloat16> b(depth, columns, random_layout(rng), random_size(rng, 0, 3));
            padded_matrix<float> c(rows, columns, random_layout(rng), 1);
            fill_with_integers(a, rng);
            fill_with_integers(b, rng);
            multiply(isa, a, b, c);
            for (std::size_t r = 0; r < rows; ++r) {
                for (std::size_t n = 0; n < columns; ++n) {
                    float sum = 0;
                    for (std::size_t k = 0; k < depth; ++k) {
                        sum +=
                            static_cast<float>(a.view()(r, k)) * static_cast<float>(b.view()(k, n));
                    }
                    wrong += c.view()(r, n) != sum;
                }
            }
        }
        CAPTURE(std::string(name(isa)));
        CHECK(wrong == 0);
    }
}

TEST_CASE("large cancelling bfloat16 terms stay within the rounding errors of float sums") {
    const std::size_t shapes[][3] = {{1, 1, 5001}, {17, 40, 1025}, {40, 70, 64}, {1, 130, 33}};
    for (const host_isa isa : available_isas()) {
        matrix_rng rng(53);
        std::size_t wrong = 0;
        for (const auto& [rows, columns, depth] : shapes) {
            padded_matrix<bfloat16> a(rows, depth, layout::row_major, 1);
            padded_matrix<bfloat16> b(depth, columns, layout::column_major, 1);
            padded_matrix<float> c(rows, columns, layout::row_major, 1);
            a.fill(rng, 1e15f);
            b.fill(rng, 1e15f);
            multiply(isa, a, b, c);
            wrong += count_wrong<bfloat16, bfloat16, float>(
                1, std::as_const(a).view(), std::as_const(b).view(), 0, std::as_const(c).view(),
                std::as_const(c).view());
        }
        CAPTURE(std::string(name(isa)));
        CHECK(wrong == 0);
    }
}

TEST_CASE("NaN and infinity in bfloat16 reach exactly the elements that depend on them") {
    for (const host_isa isa : available_isas()) {
        matrix_rng rng(59);
        std::size_t wrong = 0;
        for (int i = 0; i < 200; ++i) {
            const std::size_t rows = random_size(rng, 1, 40);
            const std::size_t columns = random_size(rng, 1, 70);
            const std::size_t depth = random_size(rng, 1, 40);
            padded_matrix<bfloat16> a(rows, depth, random_layout(rng), 1);
            padded_matrix<bfloat16> b(depth, columns, random_layout(rng), 1);
            padded_matrix<float> c(rows, columns, random_layout(rng), 1);
            a.fill(rng);
            b.fill(rng);
            const std::size_t row = random_size(rng, 0, rows - 1);
            const std::size_t k = random_size(rng, 0, depth - 1);
            const std::size_t zero = random_size(rng, 0, columns - 1);
            for (std::size_t n = 0; n < columns; ++n) b.view()(k, n) = bfloat16(0.5f);
            const bool infinite = rng() % 2 == 0;
            a.view()(row, k) = bfloat16(infinite ? std::numeric_limits<float>::infinity()
                                                 : std::numeric_limits<float>::quiet_NaN());
            b.view()(k, zero) = bfloat16(0.0f);  // infinity times 0 is NaN
            multiply(isa, a, b, c);
            for (std::size_t r = 0; r < rows; ++r) {
                for (std::size_t n = 0; n < columns; ++n) {
                    const float value = c.view()(r, n);
                    if (r != row) {
                        wrong += !is_finite(value);
                    } else if (infinite && n != zero) {
                        wrong += value != std::numeric_limits<float>::infinity();
                    } else {
                        wrong += !is_nan(value);
                    }
                }
            }
        }
        CAPTURE(std::string(name(isa)));
        CHECK(wrong == 0);
    }
}

TEST_CASE("only the bfloat16 dot product takes subnormal elements for zero") {
    const std::vector<bfloat16> tiny(9, bfloat16::from_bits(0x0001)), large(9, bfloat16(0x1p60f));
    for (const host_isa isa : available_isas()) {
        CAPTURE(std::string(name(isa)));
        CHECK(dot(isa, tiny, large) == (isa == host_isa::avx512_bf16 ? 0.0f : 9 * 0x1p-73f));
        // The smallest normal number counts everywhere.
        CHECK(dot(isa, std::vector<bfloat16>(9, bfloat16(0x1p-126f)), large) == 9 * 0x1p-66f);
    }
}

TEST_CASE("the bfloat16 dot product is for two bfloat16 operands") {
    constexpr auto best = host_isa::avx512_bf16;
    CHECK(detail::product_isa<bfloat16, bfloat16>(best) == best);
    CHECK(detail::product_isa<bfloat16, float>(best) == host_isa::avx512);
    CHECK(detail::product_isa<float16, float16>(best) == host_isa::avx512);
    CHECK(detail::product_isa<bfloat16, bfloat16>(host_isa::avx512) == host_isa::avx512);
    CHECK(detail::product_isa<bfloat16, bfloat16>(host_isa::portable) == host_isa::portable);
}
