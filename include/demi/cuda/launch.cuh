// SPDX-License-Identifier: MIT
/// Launches of kernels, checked.
#pragma once

#include <demi/cuda/context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace demi::inline DEMI_ABI::detail {

struct launch_shape {
    dim3 blocks;
    dim3 threads;
    std::size_t shared_bytes = 0;
};

/// Throws `cuda_error` when the launch is refused; what goes wrong later shows in a later call.
template <class... Parameters, class... Arguments>
void launch(std::string_view name, void (*kernel)(Parameters...), const launch_shape& shape,
            cuda_stream_ref stream, const Arguments&... arguments) {
    cudaLaunchConfig_t config{};
    config.gridDim = shape.blocks;
    config.blockDim = shape.threads;
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = stream.get();
    check_cuda(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), name);
}

/// As many blocks as the device runs at a time, and not more than there is work for.
template <class... Parameters>
unsigned resident_blocks(void (*kernel)(Parameters...), unsigned threads, std::uint64_t work,
                         const cuda_device& device) {
    int per_multiprocessor = 0;
    check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel,
                                                             static_cast<int>(threads), 0),
               "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    const auto resident =
        static_cast<std::uint64_t>(std::max(per_multiprocessor, 1) * device.multiprocessors);
    return static_cast<unsigned>(std::min(work, resident));
}

}  // namespace demi::inline DEMI_ABI::detail
