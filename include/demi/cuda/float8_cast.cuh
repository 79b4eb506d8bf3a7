// SPDX-License-Identifier: MIT
/// Scaled conversion to formats of 8 bits on a CUDA device: values, transpose and amax of one read.
#pragma once

#include <demi/core/detail/shared_maximum.hpp>
#include <demi/cuda/matrix_cast.cuh>

#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// Scales and rounds one value, and keeps the largest magnitude that it saw. `Scaling` has the
/// pointers `scale`, `amax` and `scale_inverse`.
template <class To, class Scaling>
struct scaled_element {
    Scaling scaling;

    struct worker {
        float scale;
        float* amax;
        std::uint32_t largest = 0;

        template <class From>
        __device__ To operator()(const From& source, std::uint64_t) {
            const float value = device_convert<float>(source);
            if (is_finite(value)) largest = ::max(largest, __float_as_uint(fabsf(value)));
            const float scaled = is_nan(value) ? value : __fmul_rn(value, scale);
            return device_convert<To>(scaled, nearest_even{}, overflow::saturate);
        }

        /// A maximum of integers is the same in any order.
        __device__ void end() const {
            __shared__ std::uint32_t of_block;
            const std::uint32_t of_warp = largest_of_warp(largest);
            if (threadIdx.x == 0) of_block = 0;
            __syncthreads();
            if (threadIdx.x % 32 == 0) atomicMax(&of_block, of_warp);
            __syncthreads();
            if (threadIdx.x == 0) atomicMax(reinterpret_cast<std::uint32_t*>(amax), of_block);
        }
    };

    __device__ worker begin() const {
        const float scale = *scaling.scale;
        const bool first = blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0;
        if (first && scaling.scale_inverse != nullptr) {
            *scaling.scale_inverse = __frcp_rn(scale);
        }
        return {scale, scaling.amax};
    }
};

/// See kernels/float8_cast.hpp: `turned` has the shape of `from`, and another layout where one pass
/// is to do. One launch then, else two; no synchronisation.
template <class From, class To, class Scaling>
void cuda_cast_transpose(cuda_context& context, const matrix_view<const From>& from,
                         const matrix_view<To>& to, const matrix_view<To>& turned,
                         const Scaling& scaling) {
    const scaled_element<To, Scaling> element{scaling};
    if (from.order() == to.order() && from.order() != turned.order()) {
        return cast_tiles(context, lines_of(from), lines_of(turned), line_counts::of(from), element,
                          lines_of(to));
    }
    cuda_cast_matrix(context, from, to, element);
    cuda_cast_matrix(context, from, turned, element);
}

}  // namespace demi::inline DEMI_ABI::detail
