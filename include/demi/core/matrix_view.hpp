// SPDX-License-Identifier: MIT
/// A matrix in somebody else's memory.
#pragma once

#include <demi/core/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI {

enum class layout : std::uint8_t {
    row_major,     ///< element (r, c) at data[r * leading_dimension + c]
    column_major,  ///< element (r, c) at data[c * leading_dimension + r]
};

/// Non-owning view of a rows x columns matrix; a transposed matrix is a view with the other layout.
template <class T>
class matrix_view {
public:
    using value_type = std::remove_const_t<T>;

    constexpr matrix_view() = default;

    /// Views contiguous memory.
    constexpr matrix_view(T* data, std::size_t rows, std::size_t columns,
                          layout order = layout::row_major)
        : matrix_view(data, rows, columns, order == layout::row_major ? columns : rows, order) {}

    /// Views memory with `leading_dimension` elements from one row (column) to the next.
    /// Throws `invalid_argument` for a null pointer to a non-empty matrix, or a leading dimension
    /// shorter than a row (column).
    constexpr matrix_view(T* data, std::size_t rows, std::size_t columns,
                          std::size_t leading_dimension, layout order)
        : data_(data),
          rows_(rows),
          columns_(columns),
          leading_dimension_(leading_dimension),
          order_(order) {
        if (data == nullptr && !empty()) {
            detail::raise(invalid_argument(detail::message(
                "matrix_view: null pointer to a matrix of ", rows, " x ", columns, " elements")));
        }
        if (leading_dimension < line_length()) {
            detail::raise(invalid_argument(detail::message(
                "matrix_view: leading dimension ", leading_dimension, " of a matrix of ", rows,
                " x ", columns, ", expected at least ", line_length())));
        }
    }

    /// A view of mutable elements is also a view of constant ones.
    template <class U>
        requires(std::same_as<const U, T>)
    constexpr matrix_view(const matrix_view<U>& other) noexcept
        : data_(other.data()),
          rows_(other.rows()),
          columns_(other.columns()),
          leading_dimension_(other.leading_dimension()),
          order_(other.order()) {}

    DEMI_HD constexpr T* data() const noexcept { return data_; }
    DEMI_HD constexpr std::size_t rows() const noexcept { return rows_; }
    DEMI_HD constexpr std::size_t columns() const noexcept { return columns_; }
    DEMI_HD constexpr std::size_t leading_dimension() const noexcept { return leading_dimension_; }
    DEMI_HD constexpr layout order() const noexcept { return order_; }
    DEMI_HD constexpr bool empty() const noexcept { return rows_ == 0 || columns_ == 0; }

    DEMI_HD constexpr T& operator()(std::size_t row, std::size_t column) const noexcept {
        return data_[row * row_stride() + column * column_stride()];
    }

    DEMI_HD constexpr std::size_t row_stride() const noexcept {
        return order_ == layout::row_major ? leading_dimension_ : 1;
    }
    DEMI_HD constexpr std::size_t column_stride() const noexcept {
        return order_ == layout::row_major ? 1 : leading_dimension_;
    }

    /// Elements from the first to the last one, both included; 0 for an empty matrix.
    DEMI_HD constexpr std::size_t extent() const noexcept {
        return empty() ? 0 : (line_count() - 1) * leading_dimension_ + line_length();
    }

private:
    DEMI_HD constexpr std::size_t line_length() const noexcept {
        return order_ == layout::row_major ? columns_ : rows_;
    }
    DEMI_HD constexpr std::size_t line_count() const noexcept {
        return order_ == layout::row_major ? rows_ : columns_;
    }

    T* data_ = nullptr;
    std::size_t rows_ = 0;
    std::size_t columns_ = 0;
    std::size_t leading_dimension_ = 0;
    layout order_ = layout::row_major;
};

/// The transpose of a matrix, without moving an element.
template <class T>
constexpr matrix_view<T> transposed(const matrix_view<T>& matrix) {
    return {matrix.data(), matrix.columns(), matrix.rows(), matrix.leading_dimension(),
            matrix.order() == layout::row_major ? layout::column_major : layout::row_major};
}

}  // namespace demi::inline DEMI_ABI
