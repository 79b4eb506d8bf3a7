// SPDX-License-Identifier: MIT
/// Matrix product on the host: packed, blocked, threaded, for any instruction set.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/host/detail/gemm_blocks.hpp>
#include <demi/host/detail/gemm_wide.hpp>
#include <demi/host/host_context.hpp>

#include <concepts>
#include <cstddef>

namespace demi::inline DEMI_ABI {
namespace detail {

template <host_isa Isa, bool Swapped, class A, class B, class C, class Epilogue>
void blocked_gemm(const host_context& context, float alpha, const matrix_view<const A>& a,
                  const matrix_view<const B>& b, float beta, const matrix_view<C>& c,
                  const Epilogue& epilogue) {
    using finish_type = gemm_finish<Swapped, Epilogue>;
    const std::size_t concurrency = context.executor == nullptr ? 1 : context.executor->concurrency;
    const gemm_plan plan = plan_gemm<Isa>(c.rows(), c.columns(), a.columns(), concurrency);
    const gemm_operand<A> rows{a.data(), a.row_stride(), a.column_stride()};
    const gemm_operand<B> columns{b.data(), b.column_stride(), b.row_stride()};
    const finish_type finish{alpha, beta, epilogue};
    const gemm_run<Isa, A, B, C, finish_type> product(plan, rows, columns, c.data(),
                                                      c.leading_dimension(), finish);
    product.run(context);
}

/// A column-major result is the row-major result of the transposed operands in the other order.
template <host_isa Isa, class A, class B, class C, class Epilogue>
void row_major_gemm(const host_context& context, float alpha, const matrix_view<const A>& a,
                    const matrix_view<const B>& b, float beta, const matrix_view<C>& c,
                    const Epilogue& epilogue) {
    if (c.order() == layout::row_major) {
        blocked_gemm<Isa, false>(context, alpha, a, b, beta, c, epilogue);
    } else {
        blocked_gemm<Isa, true>(context, alpha, transposed(b), transposed(a), beta, transposed(c),
                                epilogue);
    }
}

/// `c = epilogue(alpha * a * b + beta * c)`; see kernels/gemm.hpp. The arguments have been checked.
///
/// Each element is one sum in the order of the inner dimension: any number of threads gives the
/// same bits, and so do any two instruction sets with fused multiply-add before the epilogue.
/// Throws what the memory resource throws, before anything is written.
template <class A, class B, class C, class Epilogue>
void host_gemm(const host_context& context, float alpha, matrix_view<const A> a,
               matrix_view<const B> b, float beta, matrix_view<C> c, const Epilogue& epilogue) {
    if (c.empty()) return;
    if constexpr (std::same_as<A, double> || std::same_as<B, double> || std::same_as<C, double>) {
        wide_gemm(context, static_cast<double>(alpha), a, b, static_cast<double>(beta), c,
                  epilogue);
        return;
    } else {
#if defined(__x86_64__)
        if (context.isa == host_isa::avx512) {
            return row_major_gemm<host_isa::avx512>(context, alpha, a, b, beta, c, epilogue);
        }
        if (context.isa == host_isa::avx2) {
            return row_major_gemm<host_isa::avx2>(context, alpha, a, b, beta, c, epilogue);
        }
#endif
        row_major_gemm<host_isa::portable>(context, alpha, a, b, beta, c, epilogue);
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
