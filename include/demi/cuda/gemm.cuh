// SPDX-License-Identifier: MIT
/// The matrix product of the CUDA backend.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/cuda/detail/gemm_launch.cuh>
#include <demi/cuda/detail/gemm_wgmma_launch.cuh>

#include <cstddef>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

template <class T>
using canonical_format = std::conditional_t<
    is_binary16<T>, float16,
    std::conditional_t<
        is_brain16<T>, bfloat16,
        std::conditional_t<
            is_binary32<T>, float,
            std::conditional_t<same_format<T, float8_e4m3>, float8_e4m3,
                               std::conditional_t<same_format<T, float8_e5m2>, float8_e5m2, T>>>>>;

/// The same memory as elements of the type that stands for all of their format: so types of one
/// format share kernels.
template <class T>
auto* canonical_pointer(T* data) {
    using canonical = canonical_format<std::remove_const_t<T>>;
    return reinterpret_cast<std::conditional_t<std::is_const_v<T>, const canonical, canonical>*>(
        data);
}

/// `c` is row-major.
template <product_math Math = product_math::usual, class A, class B, class C, class Epilogue>
auto make_product(float alpha, const matrix_view<const A>& a, const matrix_view<const B>& b,
                  float beta, const matrix_view<C>& c, const Epilogue& epilogue,
                  bool is_transposed) {
    using product =
        gemm_product<canonical_format<A>, canonical_format<B>, canonical_format<C>, Epilogue, Math>;
    return product{
        c.rows(),
        c.columns(),
        a.columns(),
        {canonical_pointer(a.data()), a.leading_dimension(), a.order() == layout::row_major},
        {canonical_pointer(b.data()), b.leading_dimension(), b.order() == layout::column_major},
        canonical_pointer(c.data()),
        c.leading_dimension(),
        is_transposed,
        false,
        alpha,
        beta,
        epilogue};
}

/// What all matrices of a product, or of a batch, have in common.
struct product_lines {
    line_access a;
    line_access b;
    line_access c;

    template <class A, class B, class C>
    void add(const matrix_view<const A>& left, const matrix_view<const B>& right,
             const matrix_view<C>& result) {
        a.add(left.data(), left.leading_dimension());
        b.add(right.data(), right.leading_dimension());
        c.add(result.data(), result.leading_dimension());
    }
};

template <class Product>
void run_product(cuda_context& context, Product product, const product_lines& lines) {
    product.has_wide_lines = lines.c.bytes() >= (sizeof(typename Product::result) == 1 ? 8 : 16);
    const product_access access{lines.a.bytes(), lines.b.bytes()};
    if constexpr (multiplies_by_wgmma<Product>) {
        if (launch_wgmma(context, product, access)) return;
    }
    launch_product(context, product, access);
}

/// `c` is row-major; the epilogue knows it as its transpose when `is_transposed`.
template <product_math Math, class A, class B, class C, class Epilogue>
void run_gemm(cuda_context& context, float alpha, const matrix_view<const A>& a,
              const matrix_view<const B>& b, float beta, const matrix_view<C>& c,
              const Epilogue& epilogue, bool is_transposed) {
    auto product = make_product<Math>(alpha, a, b, beta, c, epilogue, is_transposed);
    product_lines lines;
    lines.add(a, b, c);
    run_product(context, product, lines);
}

/// See requirement 7 of `backend`. One launch, or two when the depth is divided for want of tiles;
/// no synchronisation; deterministic.
template <product_math Math = product_math::usual, class A, class B, class C, class Epilogue>
void cuda_gemm(cuda_context& context, float alpha, const matrix_view<const A>& a,
               const matrix_view<const B>& b, float beta, const matrix_view<C>& c,
               const Epilogue& epilogue) {
    if (c.order() == layout::row_major) {
        run_gemm<Math>(context, alpha, a, b, beta, c, epilogue, false);
    } else {
        run_gemm<Math>(context, alpha, transposed(b), transposed(a), beta, transposed(c), epilogue,
                       true);
    }
}

}  // namespace demi::inline DEMI_ABI::detail
