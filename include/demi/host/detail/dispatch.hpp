// SPDX-License-Identifier: MIT
/// Code for one instruction set inside a program compiled for another.
#pragma once

#include <demi/host/isa.hpp>
#include <demi/host/lanes.hpp>

#include <concepts>

namespace demi::inline DEMI_ABI {
namespace detail {

template <host_isa Isa>
inline constexpr int lane_count = Isa >= host_isa::avx512 ? 16
                                  : Isa == host_isa::avx2 ? 8
                                                          : 4;

template <class Work>
[[gnu::flatten]] void run_portable(const Work& work) {
    work.template run<host_isa::portable>();
}

#if defined(__x86_64__)
template <class Work>
[[DEMI_TARGET_AVX2, gnu::flatten]] void run_avx2(const Work& work) {
    work.template run<host_isa::avx2>();
}

template <class Work>
[[DEMI_TARGET_AVX512, gnu::flatten]] void run_avx512(const Work& work) {
    work.template run<host_isa::avx512>();
}

template <class Work>
[[DEMI_TARGET_AVX512_BF16, gnu::flatten]] void run_avx512_bf16(const Work& work) {
    work.template run<host_isa::avx512_bf16>();
}
#endif

/// Calls `work.run<Isa>()` in a function compiled for `isa`; AVX-512 BF16 is for dot products only,
/// everything else but work with a constant `takes_dot_products` that is true gets AVX-512 for it.
template <class Work>
void run_on(host_isa isa, const Work& work) {
#if defined(__x86_64__)
    if constexpr (requires { requires Work::takes_dot_products; }) {
        if (isa == host_isa::avx512_bf16) return run_avx512_bf16(work);
    }
    if (isa >= host_isa::avx512) return run_avx512(work);
    if (isa == host_isa::avx2) return run_avx2(work);
#endif
    static_cast<void>(isa);
    run_portable(work);
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
