// SPDX-License-Identifier: MIT
/// Matrix product on the host: packed, blocked, threaded, for any instruction set.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/host/detail/gemm_blocks.hpp>
#include <demi/host/detail/gemm_kernel.hpp>
#include <demi/host/detail/gemm_wide.hpp>
#include <demi/host/host_context.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace demi::inline DEMI_ABI {
namespace detail {

/// What a caller has packed of the operands; null for nothing.
struct gemm_packs {
    const packed_panels* a = nullptr;
    const packed_panels* b = nullptr;
};

template <host_isa Isa, class T>
operand_form form_of(const gemm_operand<T>& operand) {
    const bool adjacent = operand.line_stride == 1;
    const bool whole_words = !adjacent && operand.length % elements_per_step<Isa> == 0;
    return {operand.packed != nullptr, packs_pairs<Isa> ? whole_words : std::is_same_v<T, float>,
            adjacent, adjacent ? operand.depth_stride : operand.line_stride};
}

template <host_isa Isa, bool Swapped, class A, class B, class C, class Epilogue>
void blocked_gemm(const host_context& context, float alpha, const matrix_view<const A>& a,
                  const matrix_view<const B>& b, float beta, const matrix_view<C>& c,
                  const Epilogue& epilogue, const gemm_packs& packs) {
    using finish_type = gemm_finish<Swapped, Epilogue>;
    const gemm_operand<A> rows{a.data(),       a.rows(),          a.columns(),
                               a.row_stride(), a.column_stride(), packs.a};
    const gemm_operand<B> columns{b.data(),          b.columns(),    b.rows(),
                                  b.column_stride(), b.row_stride(), packs.b};
    const std::size_t concurrency = context.executor == nullptr ? 1 : context.executor->concurrency;
    const finish_type finish{alpha, beta, epilogue};
    const gemm_plan plan =
        plan_gemm<Isa>({c.rows(), c.columns(), a.columns(), concurrency, form_of<Isa>(rows),
                        form_of<Isa>(columns), std::is_same_v<C, float> && beta == 0});
    const gemm_run<Isa, A, B, C, finish_type> product(plan, rows, columns, c.data(),
                                                      c.leading_dimension(), finish);
    product.run(context);
}

/// A column-major result is the row-major result of the transposed operands in the other order. So
/// is a single column, which is better computed as a row: of vectors that are full.
template <host_isa Isa, class A, class B, class C, class Epilogue>
void row_major_gemm(const host_context& context, float alpha, const matrix_view<const A>& a,
                    const matrix_view<const B>& b, float beta, const matrix_view<C>& c,
                    const Epilogue& epilogue, const gemm_packs& packs) {
    const bool column = c.columns() == 1 && c.leading_dimension() == 1;
    const bool packed = packs.a != nullptr || packs.b != nullptr;
    if (column && c.rows() > 1 && c.order() == layout::row_major && !packed) {
        const matrix_view<C> row(c.data(), 1, c.rows());
        blocked_gemm<Isa, true>(context, alpha, transposed(b), transposed(a), beta, row, epilogue,
                                packs);
    } else if (c.order() == layout::row_major) {
        blocked_gemm<Isa, false>(context, alpha, a, b, beta, c, epilogue, packs);
    } else {
        blocked_gemm<Isa, true>(context, alpha, transposed(b), transposed(a), beta, transposed(c),
                                epilogue, {packs.b, packs.a});
    }
}

/// `c = epilogue(alpha * a * b + beta * c)`; see kernels/gemm.hpp. The arguments have been checked.
///
/// Each element is a sum in the order of the inner dimension, or for few and long sums a sum of
/// such slices: any number of threads gives the same bits, and so do any two instruction sets with
/// fused multiply-add before the epilogue, except as follows.
///
/// `host_isa::avx512_bf16` multiplies two bfloat16 matrices by the dot product instruction, which
/// adds the products of two steps at a time in float. It takes subnormal elements for zero, and
/// gives zero for subnormal sums: up to 2^-126 per step that any other path keeps.
///
/// Throws `out_of_memory` when the workspace is refused, before anything is written.
template <class A, class B, class C, class Epilogue>
void host_gemm(const host_context& context, float alpha, matrix_view<const A> a,
               matrix_view<const B> b, float beta, matrix_view<C> c, const Epilogue& epilogue,
               const gemm_packs& packs = {}) {
    if (c.empty()) return;
    if constexpr (std::same_as<A, double> || std::same_as<B, double> || std::same_as<C, double>) {
        wide_gemm(context, static_cast<double>(alpha), a, b, static_cast<double>(beta), c,
                  epilogue);
    } else {
        run_for_kernel<A, B>(context.isa, [&]<host_isa Isa>(isa_constant<Isa>) {
            row_major_gemm<Isa>(context, alpha, a, b, beta, c, epilogue, packs);
        });
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
