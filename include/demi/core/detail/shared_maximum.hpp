// SPDX-License-Identifier: MIT
/// A number in memory that many threads raise at the same time.
#pragma once

#include <demi/core/config.hpp>

#include <atomic>
#include <cstdint>

namespace demi::inline DEMI_ABI {
namespace detail {

template <class To, class From>
DEMI_HD constexpr To same_bits_as(From value) {
    return __builtin_bit_cast(To, value);
}

/// Raises a number of 32 bits that orders as its bits do, such as a float that is 0 or more.
template <class Number>
DEMI_HD void raise_shared(Number* number, std::uint32_t bits) {
    static_assert(sizeof(Number) == sizeof(bits));
#if defined(__CUDA_ARCH__)
    atomicMax(reinterpret_cast<std::uint32_t*>(number), bits);
#else
    // Looks first: a number that has grown is seldom written, so that threads can share its line.
    const std::atomic_ref<Number> shared(*number);
    Number seen = shared.load(std::memory_order_relaxed);
    while (same_bits_as<std::uint32_t>(seen) < bits &&
           !shared.compare_exchange_weak(seen, same_bits_as<Number>(bits),
                                         std::memory_order_relaxed)) {
    }
#endif
}

/// The largest of the values of a warp, whose threads all call this; on the host the value.
DEMI_HD inline std::uint32_t largest_of_warp(std::uint32_t value) {
#if defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ >= 800
    value = __reduce_max_sync(~0u, value);
#else
    for (unsigned distance = 16; distance > 0; distance /= 2) {
        const std::uint32_t other = __shfl_xor_sync(~0u, value, distance);
        value = other > value ? other : value;
    }
#endif
#endif
    return value;
}

/// `raise_shared` by all threads of a warp together, each with bits of its own: one write, and none
/// when all bits are 0.
template <class Number>
DEMI_HD void raise_together(Number* number, std::uint32_t bits) {
    const std::uint32_t largest = largest_of_warp(bits);
#if defined(__CUDA_ARCH__)
    if (threadIdx.x % 32 != 0) return;
#endif
    if (largest != 0) raise_shared(number, largest);
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
