// SPDX-License-Identifier: MIT
/// The instructions that only devices of compute capability 9.0 have, for products: barriers in
/// shared memory, the copy engine, and multiplications by groups of four warps.
#pragma once

#include <demi/cuda/convert.cuh>
#include <demi/precision/float8.hpp>

#include <cuda.h>

#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// Whether the device code at hand may use them: it is compiled for sm_90a.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool has_wgmma = true;
#else
inline constexpr bool has_wgmma = false;
#endif

/// Barriers are 8 bytes of shared memory, given by their address there.
__device__ inline void init_barrier(std::uint32_t barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/// Lets the copy engine see barriers that this thread has made.
__device__ inline void publish_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void arrive(std::uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives, and has the phase last until `bytes` have been copied, too.
__device__ inline void arrive_before_copies(std::uint32_t barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/// Waits for the end of the phase of this parity; the first one has parity 0.
__device__ inline void wait_for_phase(std::uint32_t barrier, unsigned parity) {
    std::uint32_t done = 0;
    while (done == 0) {
        asm volatile(
            "{\n.reg .pred done;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
            "selp.u32 %0, 1, 0, done;\n}"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    }
}

__device__ inline void prefetch_map(const CUtensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Starts to copy the box at these coordinates to shared memory; `barrier` counts its bytes.
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap& map, std::uint32_t barrier,
                                int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
}

/// Takes registers from those that groups of warps have given up, or gives up; every warp of a
/// group does it.
template <int Registers>
__device__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ void give_up_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Before the first multiplication after other instructions have written its sums.
__device__ inline void open_multiplications() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ inline void close_multiplications() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits for all closed multiplications but the last `Open` groups.
template <int Open>
__device__ void wait_for_multiplications() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Open) : "memory");
}

/// Keeps what else is done with sums before, or behind, the instructions between which this stands.
template <int Count>
__device__ void hold(float (&sums)[Count][4]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        asm volatile(""
                     : "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]),
                       "+f"(sums[i][3])::"memory");
    }
}

/// How tensor cores find an operand in shared memory: pieces of 128 bytes, eight after each other
/// make a block. `Across`: the pieces run across the depth, else along it; further pieces across
/// are `depth` pieces away then.
template <bool Across>
__device__ std::uint64_t operand_place(std::uint32_t address, std::uint64_t depth) {
    constexpr std::uint64_t swizzled_by_128_bytes = 1;
    const std::uint64_t next_pieces = Across ? depth * 128 / 16 : 1;
    const std::uint64_t next_block = 1024 / 16;
    return swizzled_by_128_bytes << 62 | next_block << 32 | next_pieces << 16 | address / 16;
}

#define DEMI_DETAIL_FOUR(i) "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
#define DEMI_DETAIL_SUMS(i)                                                        \
    DEMI_DETAIL_FOUR(i), DEMI_DETAIL_FOUR(i + 1), DEMI_DETAIL_FOUR(i + 2),         \
        DEMI_DETAIL_FOUR(i + 3), DEMI_DETAIL_FOUR(i + 4), DEMI_DETAIL_FOUR(i + 5), \
        DEMI_DETAIL_FOUR(i + 6), DEMI_DETAIL_FOUR(i + 7)
#define DEMI_DETAIL_SUMS_64 DEMI_DETAIL_SUMS(0)
#define DEMI_DETAIL_SUMS_128 DEMI_DETAIL_SUMS_64, DEMI_DETAIL_SUMS(8)
#define DEMI_DETAIL_SUMS_256 DEMI_DETAIL_SUMS_128, DEMI_DETAIL_SUMS(16), DEMI_DETAIL_SUMS(24)

#define DEMI_DETAIL_NAMES_64                                                 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define DEMI_DETAIL_NAMES_128                                                            \
    DEMI_DETAIL_NAMES_64                                                                 \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define DEMI_DETAIL_NAMES_256                                                                \
    DEMI_DETAIL_NAMES_128                                                                    \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "     \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "       \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, " \
    "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, "   \
    "%125, %126, %127"

#define DEMI_DETAIL_MULTIPLY(n, k, formats, a, b, kept, last)                         \
    asm volatile("{\n.reg .pred keep;\nsetp.ne.b32 keep, " kept                       \
                 ", 0;\n"                                                             \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k" #k ".f32." formats        \
                 " {" DEMI_DETAIL_NAMES_##n "}, " a ", " b ", keep, 1, 1" last ";\n}" \
                 : DEMI_DETAIL_SUMS_##n                                               \
                 : "l"(place_a), "l"(place_b), "r"(keep), "n"(AcrossA ? 1 : 0),       \
                   "n"(AcrossB ? 1 : 0))

/// The product of 64 rows, 32 bytes deep, by n columns: `keep` 0 replaces the sums, 1 adds to them.
#define DEMI_DETAIL_MULTIPLY_BY(n, a, b, kept, across)                            \
    template <class A, class B, bool AcrossA, bool AcrossB>                       \
    __device__ void multiply_async(float(&sums)[n / 8][4], std::uint64_t place_a, \
                                   std::uint64_t place_b, int keep) {             \
        constexpr bool four_bits_a = same_format<A, float8_e4m3>;                 \
        constexpr bool four_bits_b = same_format<B, float8_e4m3>;                 \
        if constexpr (is_binary16<A>) {                                           \
            DEMI_DETAIL_MULTIPLY(n, 16, "f16.f16", a, b, kept, across);           \
        } else if constexpr (is_brain16<A>) {                                     \
            DEMI_DETAIL_MULTIPLY(n, 16, "bf16.bf16", a, b, kept, across);         \
        } else if constexpr (four_bits_a && four_bits_b) {                        \
            DEMI_DETAIL_MULTIPLY(n, 32, "e4m3.e4m3", a, b, kept, "");             \
        } else if constexpr (four_bits_a) {                                       \
            DEMI_DETAIL_MULTIPLY(n, 32, "e4m3.e5m2", a, b, kept, "");             \
        } else if constexpr (four_bits_b) {                                       \
            DEMI_DETAIL_MULTIPLY(n, 32, "e5m2.e4m3", a, b, kept, "");             \
        } else {                                                                  \
            DEMI_DETAIL_MULTIPLY(n, 32, "e5m2.e5m2", a, b, kept, "");             \
        }                                                                         \
    }

DEMI_DETAIL_MULTIPLY_BY(64, "%32", "%33", "%34", ", %35, %36")
DEMI_DETAIL_MULTIPLY_BY(128, "%64", "%65", "%66", ", %67, %68")
DEMI_DETAIL_MULTIPLY_BY(256, "%128", "%129", "%130", ", %131, %132")

#undef DEMI_DETAIL_MULTIPLY_BY
#undef DEMI_DETAIL_MULTIPLY
#undef DEMI_DETAIL_NAMES_256
#undef DEMI_DETAIL_NAMES_128
#undef DEMI_DETAIL_NAMES_64
#undef DEMI_DETAIL_SUMS_256
#undef DEMI_DETAIL_SUMS_128
#undef DEMI_DETAIL_SUMS_64
#undef DEMI_DETAIL_SUMS
#undef DEMI_DETAIL_FOUR

}  // namespace demi::inline DEMI_ABI::detail
