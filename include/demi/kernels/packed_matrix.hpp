// SPDX-License-Identifier: MIT
/// An operand that is prepared once for many products.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/kernels/gemm.hpp>
#include <demi/precision/format_traits.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {

namespace detail {

/// Whether a backend packs a matrix of `T` for products with one of `Partner`.
template <class B, class T, class Partner>
concept packs_matrices = requires(const B& where, const matrix_view<const T>& matrix) {
    where.template pack<Partner>(matrix, operand_side::right, layout::row_major);
};

struct nothing_packed {};

template <class T, class Partner, class B>
auto pack_if_possible(const B& where, const matrix_view<const T>& matrix, operand_side side,
                      layout result) {
    if constexpr (packs_matrices<B, T, Partner>) {
        return where.template pack<Partner>(matrix, side, result);
    } else {
        return nothing_packed{};
    }
}

}  // namespace detail

/// A matrix in the form that a backend's products read best, for weights that stay the same over
/// several products: `packed_matrix<bfloat16> w(backend, view, operand_side::right);` and then
/// `gemm(backend, x, w, y)`, which gives the same bits as `gemm(backend, x, view, y)`.
///
/// `T` is the format of the matrix and `Partner` that of the other operand; `result` is the layout
/// of the results. The matrix must stay alive and unchanged until it is packed again, by assigning
/// a new value: a backend that does not pack reads it in each product.
/// Throws `out_of_memory`. Cost: one pass over the matrix, and memory for as many floats (half of
/// that for bfloat16 pairs).
template <floating_format T, floating_format Partner = T, backend B = host_backend>
class packed_matrix {
public:
    packed_matrix(const B& where, const matrix_view<const T>& matrix, operand_side side,
                  layout result = layout::row_major)
        : matrix_(matrix),
          side_(side),
          packed_(detail::pack_if_possible<T, Partner>(where, matrix, side, result)) {}

    /// What was packed.
    const matrix_view<const T>& matrix() const noexcept { return matrix_; }
    operand_side side() const noexcept { return side_; }
    /// The backend's own form.
    const auto& storage() const noexcept { return packed_; }

private:
    using storage_type = decltype(detail::pack_if_possible<T, Partner>(
        std::declval<const B&>(), std::declval<const matrix_view<const T>&>(), operand_side::left,
        layout::row_major));

    matrix_view<const T> matrix_;
    operand_side side_;
    storage_type packed_;
};

namespace detail {

template <class Packed>
void require_side(const Packed& packed, operand_side side) {
    if (packed.side() == side) return;
    const auto name = [](operand_side which) {
        return which == operand_side::left ? "left" : "right";
    };
    raise(invalid_argument(message("gemm: matrix packed as the ", name(packed.side()),
                                   " operand, expected ", name(side))));
}

template <class B, class Left, class Right, class Result, class Epilogue, class Packed>
void packed_gemm(B& where, const matrix_view<const Left>& a, const matrix_view<const Right>& b,
                 const matrix_view<Result>& c, const gemm_options& options,
                 const Epilogue& function, const Packed& packed) {
    if constexpr (requires {
                      where.gemm(options.alpha, a, b, options.beta, c, function, packed.storage());
                  }) {
        require_product(a, b, c, options, function);
        if (c.empty()) return;
        where.gemm(options.alpha, a, b, options.beta, c, function, packed.storage());
    } else {
        demi::gemm(where, a, b, c, options, function);
    }
}

}  // namespace detail

/// `gemm` with a packed right operand. Throws as that does, and `invalid_argument` when the matrix
/// was packed as the left operand, for another layout of results, or for other kernels.
template <backend B, class Left, class Right, floating_format Result,
          epilogue Epilogue = no_epilogue>
void gemm(const B& where, const matrix_view<Left>& a,
          const packed_matrix<Right, std::remove_const_t<Left>, B>& b, const matrix_view<Result>& c,
          const gemm_options& options = {}, const Epilogue& function = {}) {
    detail::require_side(b, operand_side::right);
    B handle = where;
    detail::packed_gemm(handle, matrix_view<const std::remove_const_t<Left>>(a), b.matrix(), c,
                        options, function, b);
}

/// `gemm` with a packed left operand.
template <backend B, class Left, class Right, floating_format Result,
          epilogue Epilogue = no_epilogue>
void gemm(const B& where, const packed_matrix<Left, std::remove_const_t<Right>, B>& a,
          const matrix_view<Right>& b, const matrix_view<Result>& c,
          const gemm_options& options = {}, const Epilogue& function = {}) {
    detail::require_side(a, operand_side::left);
    B handle = where;
    detail::packed_gemm(handle, a.matrix(), matrix_view<const std::remove_const_t<Right>>(b), c,
                        options, function, a);
}

}  // namespace demi::inline DEMI_ABI
