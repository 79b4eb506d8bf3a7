// SPDX-License-Identifier: MIT
#include <demi/host/host_backend.hpp>
#include <demi/kernels/epilogue.hpp>
#include <demi/kernels/packed_matrix.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <support/backends.hpp>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <support/message_of.hpp>
#include <utility>
#include <vector>

namespace {

using namespace demi;

/// Multiplies with either operand packed and counts the results that differ from the plain call.
template <class A, class B>
std::size_t differences(const host_backend& where, matrix_rng& rng, std::size_t rows,
                        std::size_t columns, std::size_t depth) {
    padded_matrix<A> a(rows, depth, random_layout(rng), random_size(rng, 0, 2));
    padded_matrix<B> b(depth, columns, random_layout(rng), random_size(rng, 0, 2));
    padded_matrix<float> c(rows, columns, random_layout(rng), random_size(rng, 0, 2));
    a.fill(rng);
    b.fill(rng);
    c.fill(rng);
    padded_matrix<float> left = c, right = c;
    const matrix_view<const A> a_view = std::as_const(a).view();
    const matrix_view<const B> b_view = std::as_const(b).view();
    const layout order = c.view().order();
    const packed_matrix<A, B> packed_a(where, a_view, operand_side::left, order);
    const packed_matrix<B, A> packed_b(where, b_view, operand_side::right, order);
    const gemm_options options{.alpha = 0.5f, .beta = 2};
    gemm(where, a_view, b_view, c.view(), options, scale{3});
    gemm(where, packed_a, b_view, left.view(), options, scale{3});
    gemm(where, a_view, packed_b, right.view(), options, scale{3});
    std::size_t different = 0;
    if (!same_bits(left.memory(), c.memory())) ++different;
    if (!same_bits(right.memory(), c.memory())) ++different;
    return different;
}

template <class A, class B>
void check_packing() {
    const std::size_t large[][3] = {{64, 700, 300}, {300, 64, 600}, {15, 33, 5000},
                                    {1, 1, 9001},   {1100, 40, 20}, {1, 600, 70},
                                    {600, 1, 70},   {5, 0, 3},      {5, 3, 0}};
    for (const host_isa isa : available_isas()) {
        for (const std::size_t threads : {1u, 3u}) {
            const host_backend where(
                {.threads = threads, .executor = make_thread_executor(3), .isa = isa});
            matrix_rng rng(61);
            std::size_t different = 0;
            for (int i = 0; i < 150; ++i) {
                different += differences<A, B>(where, rng, random_size(rng, 1, 70),
                                               random_size(rng, 1, 70), random_size(rng, 1, 70));
            }
            for (const auto& [rows, columns, depth] : large) {
                different += differences<A, B>(where, rng, rows, columns, depth);
            }
            CAPTURE(std::string(name(isa)), threads);
            CHECK(different == 0);
        }
    }
}

}  // namespace

TEST_CASE("a packed float operand gives the bits of the plain product") {
    check_packing<float, float>();
}

TEST_CASE("a packed bfloat16 operand gives the bits of the plain product") {
    check_packing<bfloat16, bfloat16>();
}

TEST_CASE("packed operands of different formats give the bits of the plain product") {
    check_packing<float16, float>();
}

TEMPLATE_TEST_CASE("a packed matrix multiplies on any backend, many times", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    const std::vector<float> weights{1, 2, 3, 4, 5, 6};
    const packed_matrix<float, float, TestType> packed(
        where, matrix_view<const float>(weights.data(), 3, 2), operand_side::right);
    CHECK(packed.side() == operand_side::right);
    CHECK(packed.matrix().data() == weights.data());
    for (int i = 0; i < 3; ++i) {
        const std::vector<float> x{1, 0, static_cast<float>(i)};
        std::vector<float> y(2);
        gemm(where, matrix_view<const float>(x.data(), 1, 3), packed,
             matrix_view<float>(y.data(), 1, 2));
        const float n = static_cast<float>(i);
        CHECK(y == std::vector<float>{1 + 5 * n, 2 + 6 * n});
    }
}

TEMPLATE_TEST_CASE("a packed matrix takes part in a product of doubles", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const std::vector<double> weights{0x1p-40};
    const std::vector<double> x{1};
    std::vector<double> y{1};
    const packed_matrix<double, double, TestType> packed(
        where, matrix_view<const double>(weights.data(), 1, 1), operand_side::left);
    gemm(where, packed, matrix_view<const double>(x.data(), 1, 1),
         matrix_view<double>(y.data(), 1, 1), {.beta = 1});
    CHECK(y[0] == 1 + 0x1p-40);
}

TEMPLATE_TEST_CASE("a packed matrix is refused on the other side and in other shapes", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    const std::vector<float> weights(6, 1.0f);
    std::vector<float> c(9, 7.0f);
    const matrix_view<const float> view(weights.data(), 3, 2);
    const packed_matrix<float, float, TestType> packed(where, view, operand_side::right);
    CHECK(mentions(message_of<invalid_argument>([&] {
                       gemm(where, packed, transposed(view), matrix_view<float>(c.data(), 3, 3));
                   }),
                   {"packed as the right operand", "expected left"}));
    CHECK(message_of<invalid_argument>([&] {
              gemm(where, view, packed, matrix_view<float>(c.data(), 3, 2));
          }) == "gemm: a is 3 x 2 and b is 3 x 2, expected b to have 2 rows");
    CHECK(c == std::vector<float>(9, 7.0f));
}
