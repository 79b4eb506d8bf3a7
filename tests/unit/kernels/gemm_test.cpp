// SPDX-License-Identifier: MIT
#include <demi/kernels/gemm.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <support/backends.hpp>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <support/message_of.hpp>
#include <utility>
#include <vector>

namespace {

using namespace demi;

/// What a product of these shapes says, with operands in separate memory.
std::string refusal(std::size_t a_rows, std::size_t a_columns, std::size_t b_rows,
                    std::size_t b_columns, std::size_t c_rows, std::size_t c_columns) {
    std::vector<float> a(64), b(64), c(64);
    reference_backend where;
    return message_of<invalid_argument>([&] {
        gemm(where, matrix_view<float>(a.data(), a_rows, a_columns),
             matrix_view<float>(b.data(), b_rows, b_columns),
             matrix_view<float>(c.data(), c_rows, c_columns));
    });
}

}  // namespace

TEMPLATE_TEST_CASE("gemm multiplies in every combination of layouts", "", DEMI_TEST_BACKENDS) {
    TestType where;
    matrix_rng rng(31);
    std::size_t errors = 0;
    for (int i = 0; i < 64; ++i) {
        const auto order = [&](int bit) {
            return (i >> bit) % 2 == 0 ? layout::row_major : layout::column_major;
        };
        padded_matrix<float16> a(19, 23, order(0), 1);
        padded_matrix<bfloat16> b(23, 37, order(1), 2);
        padded_matrix<float> c(19, 37, order(2), 3);
        a.fill(rng);
        b.fill(rng);
        c.fill(rng);
        const padded_matrix<float> old = c;
        gemm(where, a.view(), b.view(), c.view(), {.alpha = 0.5f, .beta = 2});
        errors += count_wrong<float16, bfloat16, float>(0.5f, std::as_const(a).view(),
                                                        std::as_const(b).view(), 2, old.view(),
                                                        std::as_const(c).view());
        if (!c.padding_is_untouched()) ++errors;
    }
    CHECK(errors == 0);
}

TEMPLATE_TEST_CASE("gemm takes constant handles and views, and transposed views", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where{};
    const std::vector<float> a{1, 2, 3, 4, 5, 6};
    std::vector<float> c(4);
    const matrix_view<const float> view(a.data(), 2, 3);
    gemm(where, view, transposed(view), matrix_view<float>(c.data(), 2, 2));
    CHECK(c == std::vector<float>{14, 32, 32, 77});
    gemm(where, view, transposed(view), matrix_view<float>(c.data(), 2, 2), {.beta = 1}, scale{2});
    CHECK(c == std::vector<float>{56, 128, 128, 308});
}

TEMPLATE_TEST_CASE("gemm without beta replaces NaN", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const std::vector<float> a{2};
    std::vector<float> c{std::numeric_limits<float>::quiet_NaN()};
    const matrix_view<const float> view(a.data(), 1, 1);
    gemm(where, view, view, matrix_view<float>(c.data(), 1, 1));
    CHECK(c[0] == 4.0f);
}

TEMPLATE_TEST_CASE("a fused layer keeps its pre-activation, and its gradient uses it", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    matrix_rng rng(37);
    for (const auto order : {layout::row_major, layout::column_major}) {
        padded_matrix<float> x(21, 8, layout::row_major, 0), w(8, 45, layout::row_major, 0);
        padded_matrix<float> y(21, 45, order, 1), z(21, 45, order, 2), dz(21, 45, order, 1);
        padded_matrix<float> plain(21, 45, layout::row_major, 0);
        x.fill(rng);
        w.fill(rng);
        std::vector<float> b(45);
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i) - 20.5f;
        gemm(where, x.view(), w.view(), plain.view());
        gemm(where, x.view(), w.view(), y.view(), {}, bias(b) | store(z.view()) | relu{});
        gemm(where, x.view(), w.view(), dz.view(), {}, relu_gradient(z.view()));
        std::size_t wrong = 0;
        for (std::size_t r = 0; r < 21; ++r) {
            for (std::size_t n = 0; n < 45; ++n) {
                const float before = plain.view()(r, n) + b[n];
                if (z.view()(r, n) != before) ++wrong;
                if (y.view()(r, n) != (before > 0 ? before : 0)) ++wrong;
                if (dz.view()(r, n) != (before > 0 ? plain.view()(r, n) : 0)) ++wrong;
            }
        }
        CHECK(wrong == 0);
        CHECK(z.padding_is_untouched());
    }
}

TEMPLATE_TEST_CASE("a fused gelu differs from a separate one by rounding only", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    matrix_rng rng(41);
    padded_matrix<bfloat16> x(30, 50, layout::row_major, 0), w(50, 40, layout::column_major, 0);
    padded_matrix<float> z(30, 40, layout::row_major, 0), y(30, 40, layout::row_major, 0);
    x.fill(rng);
    w.fill(rng);
    gemm(where, x.view(), w.view(), y.view(), {}, store(z.view()) | gelu{});
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < y.memory().size(); ++i) {
        const float expected = gelu{}(z.memory()[i]);
        if (!(std::fabs(y.memory()[i] - expected) <= 1e-6f * (1 + std::fabs(expected)))) ++wrong;
    }
    CHECK(wrong == 0);
}

TEST_CASE("gemm names the shapes that do not fit") {
    CHECK(refusal(2, 3, 4, 5, 2, 5) ==
          "gemm: a is 2 x 3 and b is 4 x 5, expected b to have 3 rows");
    CHECK(refusal(2, 3, 3, 5, 2, 6) ==
          "gemm: c is 2 x 6, expected 2 x 5 for a of 2 x 3 and b of 3 x 5");
    CHECK(refusal(2, 3, 3, 5, 3, 5) ==
          "gemm: c is 3 x 5, expected 2 x 5 for a of 2 x 3 and b of 3 x 5");
    CHECK(refusal(2, 3, 3, 5, 2, 5).empty());
}

TEST_CASE("gemm refuses factors that are not finite, and leaves the result alone") {
    const std::vector<float> a{2};
    std::vector<float> c{7};
    reference_backend where;
    const matrix_view<const float> view(a.data(), 1, 1);
    const auto product = [&](const gemm_options& options) {
        return message_of<invalid_argument>(
            [&] { gemm(where, view, view, matrix_view<float>(c.data(), 1, 1), options); });
    };
    CHECK(mentions(product({.alpha = std::numeric_limits<float>::infinity()}), {"alpha is inf"}));
    CHECK(mentions(product({.beta = std::numeric_limits<float>::quiet_NaN()}), {"beta is nan"}));
    CHECK(c[0] == 7.0f);
}

TEST_CASE("gemm refuses an epilogue of another shape, and leaves the result alone") {
    const std::vector<float> a{2}, two(2);
    std::vector<float> c{7};
    reference_backend where;
    const matrix_view<const float> view(a.data(), 1, 1);
    CHECK(mentions(message_of<invalid_argument>([&] {
                       gemm(where, view, view, matrix_view<float>(c.data(), 1, 1), {},
                            relu{} | bias(two));
                   }),
                   {"bias: 2 values, expected 1"}));
    CHECK(c[0] == 7.0f);
}

TEST_CASE("gemm refuses a result that shares memory with an operand") {
    std::vector<float> memory(100), other(100, 1.0f);
    reference_backend where;
    const matrix_view<float> operand(other.data(), 4, 4);
    const auto product = [&](const matrix_view<float>& a, const matrix_view<float>& b,
                             const matrix_view<float>& c) {
        return message_of<invalid_argument>([&] { gemm(where, a, b, c); });
    };
    const auto at = [&](std::size_t offset, std::size_t leading) {
        return matrix_view<float>(memory.data() + offset, 4, 4, leading, layout::row_major);
    };
    CHECK(product(at(0, 4), operand, at(0, 4)) ==
          "gemm: c, 4 x 4, shares memory with a, 4 x 4, expected separate memory");
    CHECK(mentions(product(operand, at(15, 4), at(0, 4)), {"shares memory with b"}));
    CHECK(mentions(product(operand, at(0, 4), at(15, 4)), {"shares memory with b"}));
    CHECK(product(at(16, 4), operand, at(0, 4)).empty());

    // Column ranges of one wide matrix.
    CHECK(product(at(4, 8), operand, at(0, 8)).empty());
    CHECK(product(at(0, 8), operand, at(4, 8)).empty());
    CHECK(product(at(12, 8), operand, at(0, 8)).empty());
    CHECK(mentions(product(at(3, 8), operand, at(0, 8)), {"shares memory with a"}));
    CHECK(mentions(product(at(5, 8), operand, at(0, 8)), {"shares memory with a"}));
    CHECK(mentions(product(at(0, 8), operand, at(5, 8)), {"shares memory with a"}));
    CHECK(mentions(product(at(0, 9), operand, at(4, 8)), {"shares memory with a"}));
}

TEST_CASE("gemm of an empty result does nothing") {
    reference_backend where;
    const std::vector<float> a(6, 1.0f);
    CHECK_NOTHROW(gemm(where, matrix_view<const float>(nullptr, 0, 3),
                       matrix_view<const float>(a.data(), 3, 2),
                       matrix_view<float>(nullptr, 0, 2)));
}
