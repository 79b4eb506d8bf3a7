// SPDX-License-Identifier: MIT
/// The instructions of a product on tensor cores, for devices of compute capability 8.0 and newer.
#pragma once

#include <demi/core/config.hpp>

#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// The compute capability of the device code at hand.
#if defined(__CUDA_ARCH__)
inline constexpr int code_capability = __CUDA_ARCH__ / 10;
#else
inline constexpr int code_capability = 0;
#endif

__device__ inline std::uint32_t shared_address(const void* memory) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
}

/// Starts to copy `Bytes` to shared memory, of which those behind the first `valid` become zero.
template <int Bytes>
__device__ void copy_async(std::uint32_t to, const void* from, int valid) {
    const auto global = __cvta_generic_to_global(from);
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
                     "l"(global), "r"(valid)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global),
                     "n"(Bytes), "r"(valid)
                     : "memory");
    }
}

__device__ inline void close_copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits for all copies of this thread but those of the last `Open` groups.
template <int Open>
__device__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Open) : "memory");
}

__device__ inline void store_shared(std::uint32_t to, std::uint16_t value) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(value) : "memory");
}

__device__ inline void store_shared(std::uint32_t to, std::uint8_t value) {
    asm volatile("st.shared.u8 [%0], %1;" ::"r"(to), "r"(std::uint32_t{value}) : "memory");
}

__device__ inline std::uint32_t load_shared(std::uint32_t from) {
    std::uint32_t value;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(from) : "memory");
    return value;
}

/// Four 8 x 8 matrices of 16-bit values; lane i gives the address of line i % 8 of matrix i / 8.
template <bool Transposed>
__device__ void load_matrices(std::uint32_t (&to)[4], std::uint32_t from) {
    if constexpr (Transposed) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
    }
}

/// Adds the product of a 16 x 16 and a 16 x 8 matrix to 16 x 8 sums.
__device__ inline void multiply_add_float16(float (&sums)[4], const std::uint32_t (&a)[4],
                                            std::uint32_t b0, std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void multiply_add_bfloat16(float (&sums)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// The same with sums in float16, two in a word.
__device__ inline void multiply_add_in_float16(std::uint32_t (&sums)[2],
                                               const std::uint32_t (&a)[4], std::uint32_t b0,
                                               std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, "
        "{%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
        : "+r"(sums[0]), "+r"(sums[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Adds the product of a 16 x 8 and an 8 x 8 matrix to 16 x 8 sums.
__device__ inline void multiply_add_tf32(float (&sums)[4], const std::uint32_t (&a)[4],
                                         std::uint32_t b0, std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Adds the product of a 16 x 32 and a 32 x 8 matrix to 16 x 8 sums. Needs compute capability 8.9.
template <bool WideExponentA, bool WideExponentB>
__device__ void multiply_add_float8(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
    if constexpr (!WideExponentA && !WideExponentB) {
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else if constexpr (!WideExponentA && WideExponentB) {
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else if constexpr (WideExponentA && !WideExponentB) {
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
}

}  // namespace demi::inline DEMI_ABI::detail
