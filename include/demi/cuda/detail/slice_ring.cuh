// SPDX-License-Identifier: MIT
/// The ring of slices in shared memory through which operands come to tensor cores.
#pragma once

#include <demi/cuda/detail/wgmma_instructions.cuh>

#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// A ring of slices in shared memory, between one thread that has them filled and the warps that
/// read them. Two barriers of each slice tell that it is full, or that all warps are done with it.
template <class Tile>
struct slice_ring {
    static constexpr unsigned stages = Tile::stages;
    static constexpr int barriers = 2 * Tile::stages;

    std::uint32_t slices;  ///< their address, a multiple of 1024
    std::uint32_t barriers_at;
    unsigned stage = 0;
    unsigned parity = 0;  ///< of the times that the ring has been around

    __device__ void init() const {
        for (unsigned i = 0; i < stages; ++i) {
            init_barrier(full(i), 1);
            init_barrier(empty(i), Tile::consumers / 32);
        }
        publish_barriers();
    }

    __device__ std::uint32_t full(unsigned i) const { return barriers_at + 8 * i; }
    __device__ std::uint32_t empty(unsigned i) const { return full(stages + i); }
    __device__ std::uint32_t slice() const { return slices + stage * Tile::stage_bytes; }

    __device__ void advance() {
        if (++stage == stages) {
            stage = 0;
            parity ^= 1;
        }
    }

    /// The first time around nobody has to leave a slice before it is filled.
    __device__ void begin_to_fill() const {
        wait_for_phase(empty(stage), parity ^ 1);
        arrive_before_copies(full(stage), Tile::stage_bytes);
    }

    __device__ void wait_until_full() const { wait_for_phase(full(stage), parity); }

    /// Every warp by itself, for each only knows of its own multiplications that they are done.
    __device__ void leave(unsigned i) const {
        if (threadIdx.x % 32 == 0) arrive(empty(i));
    }
};

}  // namespace demi::inline DEMI_ABI::detail
