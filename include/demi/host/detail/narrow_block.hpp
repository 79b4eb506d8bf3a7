// SPDX-License-Identifier: MIT
/// Blocks of floats narrowed to and widened from 8 bits: what every instruction set has to give.
#pragma once

#include <demi/host/isa.hpp>
#include <demi/precision/float8.hpp>
#include <demi/precision/format_traits.hpp>

namespace demi::inline DEMI_ABI {
namespace detail {

/// What there is without kernels of its own: nothing.
template <host_isa Isa>
struct narrow_block {
    template <class To, class From, class Rounding>
    static constexpr bool converts = false;
};

template <class T>
inline constexpr bool is_float8 = same_format<T, float8_e4m3> || same_format<T, float8_e5m2>;

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
