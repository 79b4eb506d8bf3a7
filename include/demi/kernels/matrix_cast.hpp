// SPDX-License-Identifier: MIT
/// Conversion of matrices from one format, layout and leading dimension to another.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/kernels/cast.hpp>
#include <demi/kernels/gemm.hpp>
#include <demi/precision/format_traits.hpp>

#include <type_traits>

namespace demi::inline DEMI_ABI {

/// A backend that converts matrices: `cast_matrix(from, to, rounding)` takes views of one shape,
/// in any layouts, that have no element in common.
template <class B, class From, class To, class Rounding>
concept casts_matrices = backend<B> &&
    requires(const B& where, matrix_view<const From> from, matrix_view<To> to, Rounding rounding) {
    where.cast_matrix(from, to, rounding);
};

/// Converts every element of `from` into the element of `to` at the same row and column.
///
/// The layouts may differ, which moves the elements as a transposition in memory does; to transpose
/// the matrix itself, give `transposed(from)`. Values are rounded once, as those of a tensor are;
/// stochastic rounding draws for the place of an element in the target, read line by line.
/// Throws `invalid_argument`, before anything is written, for shapes that differ or memory in
/// common. Cost: one pass, no synchronisation.
template <class B, class From, floating_format To, list_rounding Rounding = nearest_even>
    requires(casts_matrices<B, std::remove_const_t<From>, To, Rounding>)
void cast(const B& where, const matrix_view<From>& from, const matrix_view<To>& to,
          Rounding rounding = {}) {
    if (from.rows() != to.rows() || from.columns() != to.columns()) {
        detail::raise(invalid_argument(detail::message("cast: target matrix is ", to.rows(), " x ",
                                                       to.columns(), ", expected ", from.rows(),
                                                       " x ", from.columns(), " as the source")));
    }
    if (detail::overlap(from, to)) {
        detail::raise(invalid_argument(
            detail::message("cast: target matrix, ", to.rows(), " x ", to.columns(),
                            ", shares memory with the source, expected separate memory")));
    }
    where.cast_matrix(matrix_view<const std::remove_const_t<From>>(from), to, rounding);
}

}  // namespace demi::inline DEMI_ABI
