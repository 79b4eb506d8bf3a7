// SPDX-License-Identifier: MIT
/// The errors of the CUDA runtime as exceptions.
#pragma once

#include <demi/core/error.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace demi::inline DEMI_ABI {

/// A call of the CUDA runtime, or a kernel that ran before it, failed.
class cuda_error : public error {
public:
    cuda_error(const std::string& message, cudaError_t code) : error(message), code_(code) {}

    cudaError_t code() const noexcept { return code_; }

private:
    cudaError_t code_;
};

namespace detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void raise_cuda(cudaError_t code,
                                                              std::string_view call,
                                                              std::size_t bytes) {
    // The runtime keeps an error for the next call that asks; this one has been reported.
    static_cast<void>(cudaGetLastError());
    const char* const name = cudaGetErrorName(code);
    const char* const text = cudaGetErrorString(code);
    if (code == cudaErrorMemoryAllocation) {
        raise(out_of_memory(bytes == 0 ? message("cuda: ", call, ": ", text)
                                       : message("cuda: ", call, " of ", bytes, " bytes: ", text),
                            bytes));
    }
    raise(cuda_error(message("cuda: ", call, ": ", name, ", ", text), code));
}

/// Throws `out_of_memory` for a refused allocation of `bytes`, `cuda_error` for other failures, and
/// leaves no error behind in the runtime.
inline void check_cuda(cudaError_t code, std::string_view call, std::size_t bytes = 0) {
    if (code != cudaSuccess) raise_cuda(code, call, bytes);
}

}  // namespace detail

}  // namespace demi::inline DEMI_ABI
