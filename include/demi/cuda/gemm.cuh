// SPDX-License-Identifier: MIT
/// The matrix product of the CUDA backend.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/cuda/convert.cuh>
#include <demi/cuda/launch.cuh>

#include <cstddef>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

template <class A, class B, class C, class Epilogue>
struct plain_product {
    float alpha;
    matrix_view<const A> a;
    matrix_view<const B> b;
    float beta;
    matrix_view<C> c;
    Epilogue epilogue;

    __device__ void run() const {
        const std::size_t row = blockIdx.y * std::size_t{blockDim.y} + threadIdx.y;
        const std::size_t column = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
        if (row >= c.rows() || column >= c.columns()) return;
        float sum = 0;
        for (std::size_t k = 0; k < a.columns(); ++k) {
            sum += device_convert<float>(a(row, k)) * device_convert<float>(b(k, column));
        }
        sum *= alpha;
        if (beta != 0) sum += beta * device_convert<float>(c(row, column));
        c(row, column) = device_convert<C>(float(epilogue(sum, matrix_position{row, column})));
    }
};

template <class Product>
__global__ void gemm_kernel(const __grid_constant__ Product product) {
    product.run();
}

/// See requirement 7 of `backend`. One launch; no synchronisation.
template <class A, class B, class C, class Epilogue>
void cuda_gemm(cuda_context& context, float alpha, const matrix_view<const A>& a,
               const matrix_view<const B>& b, float beta, const matrix_view<C>& c,
               const Epilogue& epilogue) {
    const plain_product<A, B, C, Epilogue> product{alpha, a, b, beta, c, epilogue};
    const dim3 threads(16, 16);
    const dim3 blocks(static_cast<unsigned>((c.columns() + 15) / 16),
                      static_cast<unsigned>((c.rows() + 15) / 16));
    launch("gemm", gemm_kernel<plain_product<A, B, C, Epilogue>>, {blocks, threads},
           context.stream(), product);
}

}  // namespace demi::inline DEMI_ABI::detail
