// SPDX-License-Identifier: MIT
/// What demi asks of a CUDA device, read once.
#pragma once

#include <demi/cuda/error.hpp>

#include <cstddef>
#include <memory>

namespace demi::inline DEMI_ABI {

/// The properties of one device that choose kernels and grids.
struct cuda_device {
    int index = 0;
    int compute_capability = 0;  ///< 10 * major + minor: 80 for 8.0
    int multiprocessors = 1;
    std::size_t shared_memory_per_block = 0;  ///< bytes that a kernel may opt in to
    bool integrated = false;                  ///< shares its memory with the host
    bool has_memory_pools = false;

    /// The device that is current on this thread. Throws `cuda_error` when there is none.
    static cuda_device current() {
        int index = 0;
        detail::check_cuda(cudaGetDevice(&index), "cudaGetDevice");
        return of(index);
    }

    /// Throws `cuda_error` when there is no such device.
    static cuda_device of(int index) {
        const auto attribute = [index](cudaDeviceAttr which) {
            int value = 0;
            detail::check_cuda(cudaDeviceGetAttribute(&value, which, index),
                               "cudaDeviceGetAttribute");
            return value;
        };
        cuda_device device;
        device.index = index;
        device.compute_capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
                                    attribute(cudaDevAttrComputeCapabilityMinor);
        device.multiprocessors = attribute(cudaDevAttrMultiProcessorCount);
        device.shared_memory_per_block =
            static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
        device.integrated = attribute(cudaDevAttrIntegrated) != 0;
        device.has_memory_pools = attribute(cudaDevAttrMemoryPoolsSupported) != 0;
        return device;
    }
};

namespace detail {

/// Makes a device current on this thread, and the former one again at the end.
class current_device {
public:
    explicit current_device(int index) {
        check_cuda(cudaGetDevice(&former_), "cudaGetDevice");
        if (former_ == index) return;
        check_cuda(cudaSetDevice(index), "cudaSetDevice");
        changed_ = true;
    }
    ~current_device() {
        if (changed_) static_cast<void>(cudaSetDevice(former_));
    }
    current_device(const current_device&) = delete;
    current_device& operator=(const current_device&) = delete;

private:
    int former_ = 0;
    bool changed_ = false;
};

/// Lets this thread allocate while one of its streams is being captured: what it gets is needed
/// for longer than one replay, so it must not become part of the graph.
class outside_capture {
public:
    outside_capture() { exchange(); }
    ~outside_capture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
    outside_capture(const outside_capture&) = delete;
    outside_capture& operator=(const outside_capture&) = delete;

private:
    void exchange() {
        check_cuda(cudaThreadExchangeStreamCaptureMode(&mode_),
                   "cudaThreadExchangeStreamCaptureMode");
    }

    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace detail

}  // namespace demi::inline DEMI_ABI
