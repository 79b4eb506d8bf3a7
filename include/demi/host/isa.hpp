// SPDX-License-Identifier: MIT
/// Which instruction set the host kernels use.
#pragma once

#include <demi/core/error.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace demi::inline DEMI_ABI {

/// Instruction sets of the host kernels, each one a superset of those before it.
enum class host_isa : std::uint8_t {
    portable,  ///< what the compiler may use anyway
    avx2,      ///< AVX2, FMA and F16C
    avx512,    ///< AVX-512 F, BW, VL and DQ, and the above
    /// AVX-512 BF16 too: products of two bfloat16 matrices use its dot product, see `host_gemm`.
    avx512_bf16,
};

constexpr std::string_view name(host_isa isa) {
    switch (isa) {
        case host_isa::avx512_bf16:
            return "avx512_bf16";
        case host_isa::avx512:
            return "avx512";
        case host_isa::avx2:
            return "avx2";
        case host_isa::portable:
            break;
    }
    return "portable";
}

/// Reads a name. Throws `invalid_argument` for any other text.
inline host_isa parse_host_isa(std::string_view text) {
    for (const host_isa isa :
         {host_isa::portable, host_isa::avx2, host_isa::avx512, host_isa::avx512_bf16}) {
        if (text == name(isa)) return isa;
    }
    detail::raise(
        invalid_argument(detail::message("host_isa: unknown instruction set \"", text,
                                         "\", expected portable, avx2, avx512 or avx512_bf16")));
}

namespace detail {

#if defined(__x86_64__)
inline bool has_bfloat16_dot_product() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned avx512_bf16 = 1u << 5;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & avx512_bf16) != 0;
}
#endif

inline host_isa query_host_isa() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    // clang 14 cannot ask for f16c by name; the AVX2 test covers the operating system's part.
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
    if (!f16c || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        return host_isa::portable;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
        return has_bfloat16_dot_product() ? host_isa::avx512_bf16 : host_isa::avx512;
    }
    return host_isa::avx2;
#else
    return host_isa::portable;
#endif
}

inline host_isa lesser(host_isa a, host_isa b) { return a < b ? a : b; }

}  // namespace detail

/// The best instruction set that this processor and operating system run.
inline host_isa detected_host_isa() {
    static const host_isa detected = detail::query_host_isa();
    return detected;
}

/// The detected instruction set, or the lower one that the environment variable `DEMI_HOST_ISA`
/// asks for; it is read once. Throws `invalid_argument` for a value that is no name.
inline host_isa default_host_isa() {
    static const host_isa chosen = [] {
        const char* wanted = std::getenv("DEMI_HOST_ISA");
        return wanted == nullptr ? detected_host_isa()
                                 : detail::lesser(parse_host_isa(wanted), detected_host_isa());
    }();
    return chosen;
}

}  // namespace demi::inline DEMI_ABI
