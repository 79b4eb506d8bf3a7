// SPDX-License-Identifier: MIT
/// Matrix views: where elements are, what is refused, and transposition without copies.
#include <demi/core/matrix_view.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <support/catch.hpp>
#include <type_traits>
#include <vector>

namespace {

using demi::layout;
using demi::matrix_view;

template <class... Arguments>
std::string refusal(const Arguments&... arguments) {
    try {
        const matrix_view<float> view(arguments...);
        return "accepted";
    } catch (const demi::invalid_argument& failure) {
        return failure.what();
    }
}

}  // namespace

TEST_CASE("a default matrix view is empty") {
    constexpr matrix_view<float> nothing;
    CHECK(nothing.empty());
    CHECK(nothing.data() == nullptr);
    CHECK(nothing.rows() == 0);
    CHECK(nothing.columns() == 0);
    CHECK(nothing.extent() == 0);
}

TEST_CASE("a contiguous view takes its leading dimension from the layout") {
    std::array<float, 6> memory{};
    const matrix_view<float> by_rows(memory.data(), 2, 3);
    CHECK(by_rows.order() == layout::row_major);
    CHECK(by_rows.leading_dimension() == 3);
    const matrix_view<float> by_columns(memory.data(), 2, 3, layout::column_major);
    CHECK(by_columns.leading_dimension() == 2);
    CHECK(by_rows.extent() == 6);
    CHECK(by_columns.extent() == 6);
}

TEST_CASE("elements are where the layout says") {
    std::array<int, 12> memory{};
    std::iota(memory.begin(), memory.end(), 0);
    const matrix_view<int> by_rows(memory.data(), 3, 2, 4, layout::row_major);
    CHECK(by_rows(0, 0) == 0);
    CHECK(by_rows(0, 1) == 1);
    CHECK(by_rows(2, 1) == 9);
    CHECK(by_rows.extent() == 10);
    const matrix_view<int> by_columns(memory.data(), 3, 2, 4, layout::column_major);
    CHECK(by_columns(0, 1) == 4);
    CHECK(by_columns(2, 1) == 6);
    CHECK(by_columns.extent() == 7);
    by_columns(1, 1) = 100;
    CHECK(memory[5] == 100);
}

TEST_CASE("the transpose is the same memory with rows and columns exchanged, for any shape") {
    std::mt19937_64 random(1);
    std::vector<int> memory(64 * 64);
    std::iota(memory.begin(), memory.end(), 0);
    int mismatches = 0;
    for (int repetition = 0; repetition < 2000; ++repetition) {
        const std::size_t rows = random() % 12;
        const std::size_t columns = random() % 12;
        const layout order = random() % 2 == 0 ? layout::row_major : layout::column_major;
        const std::size_t line = order == layout::row_major ? columns : rows;
        const matrix_view<int> matrix(memory.data(), rows, columns, line + random() % 5, order);
        const matrix_view<int> flipped = demi::transposed(matrix);
        if (flipped.rows() != columns || flipped.columns() != rows) ++mismatches;
        if (flipped.extent() != matrix.extent()) ++mismatches;
        std::size_t last = 0;
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t column = 0; column < columns; ++column) {
                if (&matrix(row, column) != &flipped(column, row)) ++mismatches;
                last = std::max(last, static_cast<std::size_t>(matrix(row, column)) + 1);
            }
        }
        if (matrix.extent() != last) ++mismatches;
        if (demi::transposed(flipped).order() != order) ++mismatches;
    }
    CHECK(mismatches == 0);
}

TEST_CASE("a view of constant elements is made from one of mutable elements, not the reverse") {
    float element = 3;
    const matrix_view<float> writable(&element, 1, 1);
    const matrix_view<const float> readable = writable;
    CHECK(readable.data() == &element);
    CHECK(readable.leading_dimension() == writable.leading_dimension());
    CHECK(readable.order() == writable.order());
    CHECK_FALSE(std::is_constructible_v<matrix_view<float>, matrix_view<const float>>);
    CHECK_FALSE(std::is_constructible_v<matrix_view<const double>, matrix_view<float>>);
    CHECK(std::is_same_v<matrix_view<const float>::value_type, float>);
}

TEST_CASE("a null pointer is refused for a matrix with elements only") {
    float* const nothing = nullptr;
    const std::string text = refusal(nothing, std::size_t{2}, std::size_t{3});
    CHECK(text == "matrix_view: null pointer to a matrix of 2 x 3 elements");
    CHECK(refusal(nothing, std::size_t{0}, std::size_t{3}) == "accepted");
    CHECK(refusal(nothing, std::size_t{2}, std::size_t{0}) == "accepted");
}

TEST_CASE("a leading dimension shorter than a line is refused by its value") {
    std::array<float, 6> memory{};
    CHECK(
        refusal(memory.data(), std::size_t{2}, std::size_t{3}, std::size_t{2}, layout::row_major) ==
        "matrix_view: leading dimension 2 of a matrix of 2 x 3, expected at least 3");
    CHECK(refusal(memory.data(), std::size_t{2}, std::size_t{3}, std::size_t{1},
                  layout::column_major) ==
          "matrix_view: leading dimension 1 of a matrix of 2 x 3, expected at least 2");
    CHECK(refusal(memory.data(), std::size_t{2}, std::size_t{3}, std::size_t{2},
                  layout::column_major) == "accepted");
}

// With -fsanitize=undefined g++ 12 does not compare an address with null in a constant expression.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("a view works at compile time") {
    static constexpr std::array<float, 4> memory{1, 2, 3, 4};
    constexpr matrix_view<const float> view(memory.data(), 2, 2);
    static_assert(view(1, 0) == 3);
    static_assert(demi::transposed(view)(0, 1) == 3);
    CHECK(view(1, 1) == 4);
}
#endif

TEST_CASE("offsets have 64 bits") {
    float element = 0;
    const std::size_t many = std::size_t{1} << 31;
    const matrix_view<float> large(&element, many, 4);
    CHECK(large.extent() == many * 4);
    CHECK(large.row_stride() == 4);
    CHECK(large.column_stride() == 1);
}
