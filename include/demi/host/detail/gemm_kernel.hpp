// SPDX-License-Identifier: MIT
/// Which instruction set a product of two formats is computed with.
#pragma once

#include <demi/host/isa.hpp>
#include <demi/precision/bfloat16.hpp>
#include <demi/precision/format_traits.hpp>

#include <type_traits>

namespace demi::inline DEMI_ABI {
namespace detail {

template <host_isa Isa>
using isa_constant = std::integral_constant<host_isa, Isa>;

/// The instruction set of the product kernel: the dot product is for two bfloat16 operands only.
template <class A, class B>
constexpr host_isa product_isa(host_isa isa) {
    constexpr bool pairs = same_format<A, bfloat16> && same_format<B, bfloat16>;
    return isa == host_isa::avx512_bf16 && !pairs ? host_isa::avx512 : isa;
}

/// Calls `work(isa_constant<...>)` for the kernel of a product.
template <class A, class B, class Work>
void run_for_kernel(host_isa isa, const Work& work) {
#if defined(__x86_64__)
    if constexpr (product_isa<A, B>(host_isa::avx512_bf16) == host_isa::avx512_bf16) {
        if (isa == host_isa::avx512_bf16) return work(isa_constant<host_isa::avx512_bf16>{});
    }
    if (isa >= host_isa::avx512) return work(isa_constant<host_isa::avx512>{});
    if (isa == host_isa::avx2) return work(isa_constant<host_isa::avx2>{});
#endif
    static_cast<void>(isa);
    work(isa_constant<host_isa::portable>{});
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
