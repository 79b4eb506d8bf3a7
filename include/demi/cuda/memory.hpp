// SPDX-License-Identifier: MIT
/// Device memory in stream order: where it comes from, and who owns it.
#pragma once

#include <demi/cuda/stream.hpp>

#include <cstddef>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {

/// Where a `cuda_backend` takes device memory from: derive from it to use an engine's own pool.
class cuda_memory_resource {
public:
    virtual ~cuda_memory_resource() = default;

    /// Memory for work given to `stream` from now on, on a boundary of 256 bytes or more. Throws
    /// `out_of_memory` when there is none.
    virtual void* allocate(std::size_t bytes, cuda_stream_ref stream) = 0;
    /// Takes memory back once the work given to `stream` so far is done.
    virtual void deallocate(void* memory, std::size_t bytes, cuda_stream_ref stream) noexcept = 0;
};

/// The runtime's stream-ordered memory pool of the device that a stream is on.
class cuda_pool_resource final : public cuda_memory_resource {
public:
    /// The device's default pool.
    cuda_pool_resource() = default;
    /// A pool of the engine's.
    explicit cuda_pool_resource(cudaMemPool_t pool) : pool_(pool) {}

    void* allocate(std::size_t bytes, cuda_stream_ref stream) override {
        void* memory = nullptr;
        if (pool_ == nullptr) {
            detail::check_cuda(cudaMallocAsync(&memory, bytes, stream.get()), "cudaMallocAsync",
                               bytes);
        } else {
            detail::check_cuda(cudaMallocFromPoolAsync(&memory, bytes, pool_, stream.get()),
                               "cudaMallocFromPoolAsync", bytes);
        }
        return memory;
    }

    void deallocate(void* memory, std::size_t, cuda_stream_ref stream) noexcept override {
        // Fails only after an error that the next checked call reports.
        static_cast<void>(cudaFreeAsync(memory, stream.get()));
    }

private:
    cudaMemPool_t pool_ = nullptr;
};

/// `cudaMalloc` and `cudaFree`, for devices without pools; each call waits for the device.
class cuda_malloc_resource final : public cuda_memory_resource {
public:
    void* allocate(std::size_t bytes, cuda_stream_ref) override {
        void* memory = nullptr;
        detail::check_cuda(cudaMalloc(&memory, bytes), "cudaMalloc", bytes);
        return memory;
    }
    void deallocate(void* memory, std::size_t, cuda_stream_ref stream) noexcept override {
        static_cast<void>(cudaStreamSynchronize(stream.get()));
        static_cast<void>(cudaFree(memory));
    }
};

namespace detail {

/// Device memory that goes back to its resource in the order of its stream.
class cuda_block {
public:
    cuda_block() = default;

    /// Throws `out_of_memory`.
    cuda_block(std::shared_ptr<cuda_memory_resource> memory, cuda_stream_ref stream,
               std::size_t bytes)
        : memory_(std::move(memory)), stream_(stream), bytes_(bytes) {
        if (bytes != 0) data_ = memory_->allocate(bytes, stream_);
    }
    cuda_block(cuda_block&& other) noexcept { swap(other); }
    cuda_block& operator=(cuda_block&& other) noexcept {
        cuda_block moved(std::move(other));
        swap(moved);
        return *this;
    }
    ~cuda_block() {
        if (data_ != nullptr) memory_->deallocate(data_, bytes_, stream_);
    }

    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }

    /// From now on freed in the order of another stream.
    void move_to(cuda_stream_ref stream) noexcept { stream_ = stream; }

private:
    void swap(cuda_block& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(stream_, other.stream_);
        std::swap(bytes_, other.bytes_);
        std::swap(data_, other.data_);
    }

    std::shared_ptr<cuda_memory_resource> memory_;
    cuda_stream_ref stream_{static_cast<cudaStream_t>(nullptr)};
    std::size_t bytes_ = 0;
    void* data_ = nullptr;
};

}  // namespace detail

/// Owns `size()` elements in device memory that start as zero bytes; freed in stream order.
///
/// Movable; a moved-from buffer is empty. The stream must outlive the buffer.
template <class T>
class cuda_buffer {
    static_assert(std::is_trivially_copyable_v<T>, "a buffer's elements are bytes to a backend");

public:
    using value_type = T;

    cuda_buffer() = default;

    /// Throws `out_of_memory`.
    cuda_buffer(std::shared_ptr<cuda_memory_resource> memory, cuda_stream_ref stream,
                std::size_t count)
        : block_(std::move(memory), stream, bytes_of(count)), size_(count) {
        if (count == 0) return;
        detail::check_cuda(cudaMemsetAsync(block_.data(), 0, block_.bytes(), stream.get()),
                           "cudaMemsetAsync");
    }
    cuda_buffer(cuda_buffer&& other) noexcept
        : block_(std::move(other.block_)), size_(std::exchange(other.size_, 0)) {}
    cuda_buffer& operator=(cuda_buffer&& other) noexcept {
        block_ = std::move(other.block_);
        size_ = std::exchange(other.size_, 0);
        return *this;
    }

    T* data() noexcept { return static_cast<T*>(block_.data()); }
    const T* data() const noexcept { return static_cast<const T*>(block_.data()); }
    std::size_t size() const noexcept { return size_; }

private:
    static std::size_t bytes_of(std::size_t count) {
        constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 2 / sizeof(T);
        if (count > most) {
            detail::raise(
                out_of_memory(detail::message("cuda_buffer: ", count, " elements of ", sizeof(T),
                                              " bytes, expected at most ", most),
                              0));
        }
        return count * sizeof(T);
    }

    detail::cuda_block block_;
    std::size_t size_ = 0;
};

}  // namespace demi::inline DEMI_ABI
