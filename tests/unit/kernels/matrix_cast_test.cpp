// SPDX-License-Identifier: MIT
/// The front door to conversions of matrices.
#include <demi/host/host_backend.hpp>
#include <demi/kernels/matrix_cast.hpp>

#include <cstddef>
#include <string>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <support/reference_backend.hpp>
#include <vector>

namespace {

using demi::float16;
using demi::layout;
using demi::matrix_view;

static_assert(demi::casts_matrices<demi::host_backend, float, float16, demi::nearest_even>);
// A backend need not convert matrices: those that do not are told apart when compiling.
static_assert(!demi::casts_matrices<reference_backend, float, float16, demi::nearest_even>);

}  // namespace

TEST_CASE("a cast between layouts keeps every element at its row and column") {
    demi::host_backend where;
    const std::vector<float> from{1, 2, 3, 4, 5, 6};
    std::vector<float16> to(6);
    const matrix_view<const float> rows(from.data(), 2, 3);
    demi::cast(where, rows, matrix_view<float16>(to.data(), 2, 3, layout::column_major));
    const std::vector<float> expected{1, 4, 2, 5, 3, 6};
    for (std::size_t i = 0; i < to.size(); ++i) CHECK(static_cast<float>(to[i]) == expected[i]);
}

TEST_CASE("a transposed view casts into the transposed matrix, of mutable elements too") {
    demi::host_backend where;
    std::vector<float> from{1, 2, 3, 4, 5, 6};
    std::vector<float16> to(6);
    const matrix_view<float> rows(from.data(), 2, 3);
    demi::cast(where, transposed(rows), matrix_view<float16>(to.data(), 3, 2));
    const std::vector<float> expected{1, 4, 2, 5, 3, 6};
    for (std::size_t i = 0; i < to.size(); ++i) CHECK(static_cast<float>(to[i]) == expected[i]);
}

TEST_CASE("the rounding of a matrix cast is the caller's choice, and counts as that of a tensor") {
    demi::host_backend where;
    const std::vector<float> from(300, 1.0f + 0x1.8p-8f);
    std::vector<demi::bfloat16> to(300), tensor(300);
    const matrix_view<const float> source(from.data(), 15, 20);
    const matrix_view<demi::bfloat16> target(to.data(), 15, 20);
    demi::cast(where, source, target, demi::toward_zero{});
    CHECK(to == std::vector<demi::bfloat16>(300, demi::bfloat16(1.0f)));
    demi::cast(where, source, target, demi::stochastic{1, 2});
    demi::cast(where, from, tensor, demi::stochastic{1, 2});
    CHECK(to == tensor);
}

TEST_CASE("a matrix cast refuses shapes that differ, naming both, and shared memory") {
    demi::host_backend where;
    std::vector<float> memory(12, 1.0f);
    std::vector<float16> to(12, float16(7.0f));
    const matrix_view<const float> source(memory.data(), 3, 4);
    const auto shapes = message_of<demi::invalid_argument>(
        [&] { demi::cast(where, source, matrix_view<float16>(to.data(), 4, 3)); });
    CHECK(mentions(shapes, {"4 x 3", "expected 3 x 4"}));
    CHECK(to == std::vector<float16>(12, float16(7.0f)));
    const auto shared = message_of<demi::invalid_argument>(
        [&] { demi::cast(where, source, matrix_view<float>(memory.data(), 3, 4)); });
    CHECK(mentions(shared, {"shares memory", "3 x 4"}));
}

TEST_CASE("an empty matrix is cast without a pointer") {
    demi::host_backend where;
    demi::cast(where, matrix_view<const float>(nullptr, 0, 5), matrix_view<float16>(nullptr, 0, 5));
    SUCCEED();
}
