// SPDX-License-Identifier: MIT
/// Accesses to several values by one instruction, which a compiler may else take apart.
#pragma once

#include <demi/core/config.hpp>

#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

template <std::size_t Words>
struct word_group {
    std::uint32_t words[Words];
};

__device__ inline void store_words(void* to, const word_group<1>& group) {
    *static_cast<std::uint32_t*>(to) = group.words[0];
}
__device__ inline void store_words(void* to, const word_group<2>& group) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
                 "r"(group.words[0]), "r"(group.words[1])
                 : "memory");
}
__device__ inline void store_words(void* to, const word_group<4>& group) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "r"(group.words[0]), "r"(group.words[1]), "r"(group.words[2]), "r"(group.words[3])
                 : "memory");
}

template <class T, std::size_t Count>
struct value_group {
    T values[Count];
};

/// Stores values of 4, 8 or 16 bytes together, or of 32 bytes in two stores, in global memory that
/// is aligned to what is stored.
template <class T, std::size_t Count>
__device__ void store_together(T* to, const value_group<T, Count>& group) {
    if constexpr (sizeof(group) > 16) {
        constexpr std::size_t half = Count / 2;
        value_group<T, half> low, high;
#pragma unroll
        for (std::size_t i = 0; i < half; ++i) {
            low.values[i] = group.values[i];
            high.values[i] = group.values[half + i];
        }
        store_together(to, low);
        store_together(to + half, high);
    } else {
        store_words(to, __builtin_bit_cast(word_group<sizeof(group) / 4>, group));
    }
}

__device__ inline void store_shared_pair(float* to, float first, float second) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(
                     static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
                 "f"(first), "f"(second)
                 : "memory");
}

__device__ inline float4 load_shared_four(const float* from) {
    float4 values;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(values.x), "=f"(values.y), "=f"(values.z), "=f"(values.w)
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(from)))
                 : "memory");
    return values;
}

}  // namespace demi::inline DEMI_ABI::detail
