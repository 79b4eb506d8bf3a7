// SPDX-License-Identifier: MIT
/// Streams: one of the engine's, by reference, or one of our own.
#pragma once

#include <demi/cuda/device.hpp>

#include <utility>

namespace demi::inline DEMI_ABI {

/// Refers to a stream that somebody else owns. There is no default: work that nobody gave a stream
/// would wait for everybody's.
class cuda_stream_ref {
public:
    cuda_stream_ref(cudaStream_t stream) noexcept : stream_(stream) {}
    cuda_stream_ref(std::nullptr_t) = delete;
    cuda_stream_ref(int) = delete;

    cudaStream_t get() const noexcept { return stream_; }

    /// Waits for all work given so far. Throws `cuda_error` when some of it failed.
    void synchronize() const {
        detail::check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    }

    /// Whether work is being recorded into a graph instead of done.
    bool is_capturing() const {
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        detail::check_cuda(cudaStreamIsCapturing(stream_, &status), "cudaStreamIsCapturing");
        return status != cudaStreamCaptureStatusNone;
    }

private:
    cudaStream_t stream_;
};

/// Owns a stream on the current device that does not wait for the null stream.
class cuda_stream {
public:
    cuda_stream() {
        detail::check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                           "cudaStreamCreateWithFlags");
    }
    cuda_stream(cuda_stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
    cuda_stream& operator=(cuda_stream&& other) noexcept {
        std::swap(stream_, other.stream_);
        return *this;
    }
    ~cuda_stream() {
        if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
    }

    operator cuda_stream_ref() const noexcept { return stream_; }
    cudaStream_t get() const noexcept { return stream_; }
    void synchronize() const { cuda_stream_ref(stream_).synchronize(); }

private:
    cudaStream_t stream_ = nullptr;
};

}  // namespace demi::inline DEMI_ABI
