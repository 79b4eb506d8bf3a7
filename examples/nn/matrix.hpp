// SPDX-License-Identifier: MIT
/// A row-major matrix in the backend's memory.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/core/matrix_view.hpp>

#include <cstddef>
#include <span>

namespace nn {

/// Owns `rows` x `columns` elements, zero at first; one example per row.
template <class T, demi::backend Backend>
class matrix {
public:
    matrix(Backend where, std::size_t rows, std::size_t columns)
        : columns_(columns), values_(where.template make_buffer<T>(rows * columns)) {}

    T* data() { return values_.data(); }

    /// The first rows, to write to.
    demi::matrix_view<T> first(std::size_t rows) { return {data(), rows, columns_}; }

    /// The first rows, to read only.
    demi::matrix_view<const T> read(std::size_t rows) { return first(rows); }

    /// All elements, as a tensor.
    std::span<T> elements() { return {data(), values_.size()}; }

private:
    std::size_t columns_;
    typename Backend::template buffer<T> values_;
};

}  // namespace nn
