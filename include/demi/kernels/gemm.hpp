// SPDX-License-Identifier: MIT
/// The checked front door to a backend's matrix product.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/core/real.hpp>
#include <demi/kernels/epilogue.hpp>
#include <demi/precision/format_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace demi::inline DEMI_ABI {

/// The factors of `c = alpha * a * b + beta * c`.
struct gemm_options {
    float alpha = 1;
    float beta = 0;
};

namespace detail {

template <class A, class B, class C>
void require_product_shapes(const matrix_view<A>& a, const matrix_view<B>& b,
                            const matrix_view<C>& c) {
    if (a.columns() != b.rows()) {
        raise(invalid_argument(message("gemm: a is ", a.rows(), " x ", a.columns(), " and b is ",
                                       b.rows(), " x ", b.columns(), ", expected b to have ",
                                       a.columns(), " rows")));
    }
    if (c.rows() != a.rows() || c.columns() != b.columns()) {
        raise(invalid_argument(message("gemm: c is ", c.rows(), " x ", c.columns(), ", expected ",
                                       a.rows(), " x ", b.columns(), " for a of ", a.rows(), " x ",
                                       a.columns(), " and b of ", b.rows(), " x ", b.columns())));
    }
}

inline void require_finite_factor(std::string_view name, float value) {
    if (!is_finite(value)) {
        raise(
            invalid_argument(message("gemm: ", name, " is ", value, ", expected a finite number")));
    }
}

/// Whether two matrices have an element in common. Matrices that are column ranges of one larger
/// matrix lie between each other's lines and have none.
template <class T, class U>
bool overlap(const matrix_view<T>& x, const matrix_view<U>& y) {
    const auto first_x = reinterpret_cast<std::uintptr_t>(x.data());
    const auto first_y = reinterpret_cast<std::uintptr_t>(y.data());
    if (x.empty() || y.empty() || first_x + x.extent() * sizeof(T) <= first_y ||
        first_y + y.extent() * sizeof(U) <= first_x) {
        return false;
    }
    const std::size_t pitch = x.leading_dimension() * sizeof(T);
    if (pitch != y.leading_dimension() * sizeof(U)) return true;
    const auto line_bytes = [](const auto& m, std::size_t size) {
        return (m.order() == layout::row_major ? m.columns() : m.rows()) * size;
    };
    const std::size_t shift = first_y > first_x ? (first_y - first_x) % pitch
                                                : (pitch - (first_x - first_y) % pitch) % pitch;
    return shift < line_bytes(x, sizeof(T)) || shift + line_bytes(y, sizeof(U)) > pitch;
}

template <class T, class C>
void require_no_overlap(std::string_view name, const matrix_view<T>& operand,
                        const matrix_view<C>& c) {
    if (overlap(operand, c)) {
        raise(invalid_argument(message("gemm: c, ", c.rows(), " x ", c.columns(),
                                       ", shares memory with ", name, ", ", operand.rows(), " x ",
                                       operand.columns(), ", expected separate memory")));
    }
}

/// Everything that `gemm` asks of its arguments.
template <class A, class B, class C, class Epilogue>
void require_product(const matrix_view<A>& a, const matrix_view<B>& b, const matrix_view<C>& c,
                     const gemm_options& options, const Epilogue& function) {
    require_product_shapes(a, b, c);
    require_finite_factor("alpha", options.alpha);
    require_finite_factor("beta", options.beta);
    require_no_overlap("a", a, c);
    require_no_overlap("b", b, c);
    if constexpr (requires { function.require_shape(c.rows(), c.columns()); }) {
        function.require_shape(c.rows(), c.columns());
    }
}

}  // namespace detail

/// Computes `c = epilogue(alpha * a * b + beta * c)`.
///
/// A transposed operand is `transposed(view)`; each matrix has its own layout and format. Products
/// are summed in float (in double when a matrix is double), and the result is rounded once, to
/// nearest even; tensor cores keep less of short sums of 8-bit products, see `cuda_backend`. NaN
/// and infinity in `a` or `b` propagate. With `beta` 0 the old `c` is not read; with an empty inner
/// dimension the product is 0. Nothing beyond the matrices is read or written, but by epilogues:
/// see epilogue.hpp, activation.hpp and watching_epilogue.hpp.
///
/// Throws `invalid_argument`, before anything is written, for shapes that do not fit, a factor that
/// is not finite, a `c` that shares memory with `a` or `b`, or an epilogue of another shape.
/// Cost: no synchronisation; on a device one launch, or two when a long inner dimension is divided
/// for want of other work; deterministic, on the host for any number of threads.
template <backend B, class Left, class Right, floating_format Result,
          epilogue Epilogue = no_epilogue>
    requires(
        floating_format<std::remove_const_t<Left>>&& floating_format<std::remove_const_t<Right>>)
void gemm(B& where, const matrix_view<Left>& a, const matrix_view<Right>& b,
          const matrix_view<Result>& c, const gemm_options& options = {},
          const Epilogue& function = {}) {
    detail::require_product(a, b, c, options, function);
    if (c.empty()) return;
    where.gemm(options.alpha, matrix_view<const std::remove_const_t<Left>>(a),
               matrix_view<const std::remove_const_t<Right>>(b), options.beta, c, function);
}

/// The same for a constant handle.
template <backend B, class Left, class Right, floating_format Result,
          epilogue Epilogue = no_epilogue>
void gemm(const B& where, const matrix_view<Left>& a, const matrix_view<Right>& b,
          const matrix_view<Result>& c, const gemm_options& options = {},
          const Epilogue& function = {}) {
    B handle = where;
    demi::gemm(handle, a, b, c, options, function);
}

}  // namespace demi::inline DEMI_ABI
