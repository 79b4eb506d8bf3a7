// SPDX-License-Identifier: MIT
/// How much memory of a CUDA device this process can still take, and how much it took at most.
#pragma once

#include <demi/batching/host_memory.hpp>
#include <demi/batching/memory_probe.hpp>
#include <demi/cuda/device.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace demi::inline DEMI_ABI {

/// The bytes of a stream-ordered memory pool.
struct cuda_pool_state {
    std::size_t reserved = 0;       ///< taken from the device
    std::size_t used = 0;           ///< of these, in the hands of the program
    std::size_t reserved_peak = 0;  ///< the most at one time since the last reset
    std::size_t used_peak = 0;
};

/// The memory of the current device as `plan_batch` asks for it: free is what the device has left
/// and what the pool has reserved without using it; the peak is that of the pool. A device that
/// shares its memory with the host has what `host_memory` says.
///
/// What this process takes by `cudaMalloc` counts as somebody else's: a step that works that way
/// reports its peak, or gives back all that it took. Models `peak_memory_probe` and
/// `recovering_memory_probe`. Every member waits for the device.
class cuda_memory_probe {
public:
    /// Watches the pool that `cudaMallocAsync` takes from. Throws `cuda_error` without a device.
    cuda_memory_probe() : cuda_memory_probe(nullptr) {}

    /// Watches a pool of the engine's, on the current device.
    explicit cuda_memory_probe(cudaMemPool_t pool)
        : cuda_memory_probe(pool, cuda_device::current(), host_memory()) {}

    /// The same for a device described by hand, with the host memory that an integrated one uses.
    cuda_memory_probe(cudaMemPool_t pool, const cuda_device& device, host_memory host)
        : device_(device), host_(std::move(host)), pool_(pool) {
        if (pool_ != nullptr || !device_.has_memory_pools) return;
        detail::check_cuda(cudaDeviceGetMemPool(&pool_, device_.index), "cudaDeviceGetMemPool");
    }

    std::size_t free_bytes() const {
        const std::size_t device = synchronized_reading().free;
        const cuda_pool_state pool = pool_state();
        return std::min(total_bytes(), (device_.integrated ? host_.free_bytes() : device) +
                                           pool.reserved - pool.used);
    }

    std::size_t total_bytes() const {
        const std::size_t device = synchronized_reading().total;
        return device_.integrated ? std::min(device, host_.total_bytes()) : device;
    }

    void reset_peak() {
        require_pool("reset_peak");
        synchronize();
        std::uint64_t zero = 0;
        for (const auto peak : {cudaMemPoolAttrUsedMemHigh, cudaMemPoolAttrReservedMemHigh}) {
            detail::check_cuda(cudaMemPoolSetAttribute(pool_, peak, &zero),
                               "cudaMemPoolSetAttribute");
        }
    }

    std::size_t peak_bytes() const {
        require_pool("peak_bytes");
        const cuda_pool_state pool = pool_state();
        return std::max(pool.used, pool.used_peak);
    }

    /// Forgets the runtime's last error and gives back what the pool does not use. Throws
    /// `cuda_error` when the device does not work any more.
    void recover() {
        static_cast<void>(cudaGetLastError());
        synchronize();
        if (pool_ != nullptr) detail::check_cuda(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo");
    }

    /// 5 % of the total, at most 1 GiB.
    std::size_t suggested_margin() const {
        return std::min(total_bytes() / 20, std::size_t{1} << 30);
    }

    /// All zero for a device without pools.
    cuda_pool_state pool_state() const {
        if (pool_ == nullptr) return {};
        synchronize();
        const auto attribute = [this](cudaMemPoolAttr which) -> std::size_t {
            std::uint64_t bytes = 0;
            detail::check_cuda(cudaMemPoolGetAttribute(pool_, which, &bytes),
                               "cudaMemPoolGetAttribute");
            return bytes;
        };
        return {attribute(cudaMemPoolAttrReservedMemCurrent),
                attribute(cudaMemPoolAttrUsedMemCurrent), attribute(cudaMemPoolAttrReservedMemHigh),
                attribute(cudaMemPoolAttrUsedMemHigh)};
    }

    /// The largest block that one `cudaMalloc` gets, to within 2 MiB, found by trying: less than
    /// what is free where that lies in pieces. Gives back what the pool does not use.
    std::size_t largest_block() {
        constexpr std::size_t step = std::size_t{2} << 20;
        recover();
        std::size_t fits = 0;
        std::size_t fails = free_bytes() / step + 1;
        while (fails - fits > 1) {
            const std::size_t middle = fits + (fails - fits + 1) / 2;
            (can_allocate(middle * step) ? fits : fails) = middle;
        }
        return fits * step;
    }

private:
    struct reading {
        std::size_t free = 0;
        std::size_t total = 0;
    };

    /// Memory on its way back through a stream is neither used nor free.
    void synchronize() const {
        const detail::current_device here(device_.index);
        detail::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }

    reading synchronized_reading() const {
        synchronize();
        const detail::current_device here(device_.index);
        reading now;
        detail::check_cuda(cudaMemGetInfo(&now.free, &now.total), "cudaMemGetInfo");
        return now;
    }

    bool can_allocate(std::size_t bytes) const {
        const detail::current_device here(device_.index);
        void* memory = nullptr;
        const cudaError_t answer = cudaMalloc(&memory, bytes);
        if (answer == cudaSuccess) {
            detail::check_cuda(cudaFree(memory), "cudaFree");
            return true;
        }
        if (answer != cudaErrorMemoryAllocation) detail::raise_cuda(answer, "cudaMalloc", bytes);
        static_cast<void>(cudaGetLastError());
        return false;
    }

    void require_pool(const char* who) const {
        if (pool_ != nullptr) return;
        detail::raise(invalid_state(detail::message(
            "cuda_memory_probe::", who, ": device ", device_.index,
            " has no memory pools, expected metered_probe{meter, cuda_memory_probe{}} there")));
    }

    cuda_device device_;
    host_memory host_;
    cudaMemPool_t pool_;
};
static_assert(peak_memory_probe<cuda_memory_probe>);
static_assert(recovering_memory_probe<cuda_memory_probe>);

}  // namespace demi::inline DEMI_ABI
