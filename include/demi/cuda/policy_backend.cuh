// SPDX-License-Identifier: MIT
/// The CUDA backend whose products follow a precision policy: TF32 factors, sums in float16.
#pragma once

#include <demi/cuda/cuda_backend.cuh>
#include <demi/precision/policy.hpp>

#include <memory>
#include <utility>

namespace demi::inline DEMI_ABI {

namespace detail {

/// What a policy allows in products of two formats.
template <class Policy, class A, class B>
constexpr product_math math_of_policy() {
    using traits = policy_traits<Policy>;
    if (is_binary32<A> && is_binary32<B> && is_binary32<typename traits::compute_type> &&
        traits::matmul_mantissa_bits == 10) {
        return product_math::tf32_factors;
    }
    if (is_binary16<A> && is_binary16<B> && is_binary16<typename traits::accumulate_type>) {
        return product_math::half_sums;
    }
    return product_math::usual;
}

}  // namespace detail

/// A `cuda_backend` whose matrix products are less exact than usual where the policy asks for it,
/// and faster, on tensor cores:
///
/// 1. Products of two float matrices, when the policy computes in float with 10 mantissa bits in
///    products, as `tf32` does. Factors are rounded to TF32: to nearest, ties away from zero, 10
///    mantissa bits, the exponents of float; what rounds to 2^128 becomes infinite. Their products
///    are exact, and sums are kept in float.
/// 2. Products of two float16 matrices, when the policy accumulates in float16. Each of the steps
///    of 16 values of the inner dimension rounds the sum to float16: it loses what is below 2^-11
///    of it, and what is beyond 65504 becomes infinite. Factors, the old result and the epilogue
///    come after that, in float.
///
/// Everything else is as in `cuda_backend`, as are these products on devices without such tensor
/// cores. For single products: `gemm(cuda_backend_for<tf32>(where), a, b, c)`.
template <precision_policy Policy>
class cuda_backend_for : public cuda_backend {
public:
    /// Throws as `cuda_backend` does.
    explicit cuda_backend_for(cuda_stream_ref stream) : cuda_backend(stream) {}
    cuda_backend_for(cuda_stream_ref stream, std::shared_ptr<cuda_memory_resource> memory)
        : cuda_backend(stream, std::move(memory)) {}

    /// Another handle of the same work.
    explicit cuda_backend_for(const cuda_backend& where) : cuda_backend(where) {}

    template <class A, class B, class C, class Epilogue>
    void gemm(float alpha, matrix_view<const A> a, matrix_view<const B> b, float beta,
              matrix_view<C> c, const Epilogue& epilogue) const {
        detail::cuda_gemm<detail::math_of_policy<Policy, A, B>()>(context(), alpha, a, b, beta, c,
                                                                  epilogue);
    }

    template <class Batch, class Epilogue>
    void gemm_batched(float alpha, const Batch& batch, float beta, const Epilogue& epilogue) const {
        using left = typename decltype(batch.a(0))::value_type;
        using right = typename decltype(batch.b(0))::value_type;
        detail::cuda_gemm_batched<detail::math_of_policy<Policy, left, right>()>(
            context(), alpha, batch, beta, epilogue);
    }
};

static_assert(backend<cuda_backend_for<tf32>>);

}  // namespace demi::inline DEMI_ABI
