// SPDX-License-Identifier: MIT
/// Conversion between binary formats, on bits: the one definition that every path must agree with.
#pragma once

#include <demi/core/config.hpp>
#include <demi/core/rounding.hpp>
#include <demi/precision/format_traits.hpp>

#include <cstdint>
#include <type_traits>

// Integer arithmetic only, so that neither the rounding mode, FTZ/DAZ nor -ffast-math can change a
// result, and the same code runs in constant expressions. The one floating-point operation turns a
// small integer into a float, which is exact. Selects instead of branches: loops vectorise.

namespace demi::inline DEMI_ABI {
namespace detail {

template <class Bits>
DEMI_HD constexpr Bits low_bits(int count) {
    return static_cast<Bits>((Bits{1} << count) - 1);
}

/// How far a significand may be shifted right before its result is the same for all larger shifts.
template <class From, class Rounding>
inline constexpr int longest_shift = From::mantissa_bits + 2 +
                                     (std::is_same_v<Rounding, stochastic_bits> ? 32 : 0);

/// Shifts right by `shift`, at least 1, and rounds to nearest even.
template <class Bits>
DEMI_HD constexpr Bits shift_and_round(Bits value, int shift, nearest_even) {
    const Bits odd = (value >> shift) & 1;
    return (value + low_bits<Bits>(shift - 1) + odd) >> shift;
}

template <class Bits>
DEMI_HD constexpr Bits shift_and_round(Bits value, int shift, toward_zero) {
    return value >> shift;
}

/// Shifts right and rounds up when the dropped fraction and the random one, both of 32 bits, have a
/// sum of 1 or more.
template <class Bits>
DEMI_HD constexpr Bits shift_and_round(Bits value, int shift, stochastic_bits random) {
    constexpr int widest = static_cast<int>(8 * sizeof(Bits)) - 1;
    const int inner_shift = shift < widest ? shift : widest;
    const Bits dropped = value & low_bits<Bits>(inner_shift);
    const int excess = shift - 32;
    const int left = excess < 0 ? -excess : 0;
    const int right = excess < 0 ? 0 : (excess < widest ? excess : widest);
    const auto fraction = static_cast<std::uint32_t>((dropped >> right) << left);
    const Bits up = fraction > ~random.bits ? 1 : 0;
    return (value >> inner_shift) + up;
}

/// The magnitude that a value, infinity included, beyond the largest finite one is given.
template <class To, class Rounding>
DEMI_HD constexpr auto overflow_magnitude(bool source_is_infinite, overflow mode) {
    constexpr bool keeps_finite = std::is_same_v<Rounding, toward_zero>;
    const bool stays = mode == overflow::saturate || (keeps_finite && !source_is_infinite);
    return stays ? To::max_finite_bits : To::overflow_bits;
}

/// Rounds a value of layout `From`, which is binary32 or binary64, to a layout with fewer mantissa
/// and no more exponent bits.
template <class To, class From, class Rounding>
DEMI_HD constexpr typename To::bits_type narrow(typename From::bits_type bits, Rounding rounding,
                                                overflow mode) {
    using source = typename From::bits_type;
    using target = typename To::bits_type;
    constexpr int dropped_bits = From::mantissa_bits - To::mantissa_bits;
    constexpr int rebias = From::exponent_bias - To::exponent_bias;

    const source magnitude = bits & From::magnitude_mask;
    // Exponent and mantissa are rounded as one number: a carry out of the mantissa is then right.
    source scaled = magnitude;
    int shift = dropped_bits;
    if constexpr (rebias != 0) {
        constexpr source smallest_normal = source{rebias + 1} << From::mantissa_bits;
        constexpr source hidden_bit = source{1} << From::mantissa_bits;
        constexpr int longest = longest_shift<From, Rounding>;
        // Subnormals of From have no hidden bit, but are so small that this makes no difference.
        static_assert(rebias > longest);
        const int exponent = static_cast<int>(magnitude >> From::mantissa_bits);
        const int distance = dropped_bits + rebias + 1 - exponent;
        const bool subnormal = magnitude < smallest_normal;
        scaled = subnormal ? (magnitude & From::mantissa_mask) | hidden_bit
                           : magnitude - (source{rebias} << From::mantissa_bits);
        shift = subnormal ? (distance < longest ? distance : longest) : dropped_bits;
    }
    const source rounded = shift_and_round<source>(scaled, shift, rounding);

    const bool infinite = magnitude == From::overflow_bits;
    const source beyond = overflow_magnitude<To, Rounding>(infinite, mode);
    const source number = rounded > To::max_finite_bits ? beyond : rounded;
    const source payload =
        To::has_infinity ? (magnitude >> dropped_bits) & To::mantissa_mask : source{0};
    const source not_a_number = To::quiet_nan_bits | payload;
    const source result = magnitude > From::largest_number_bits ? not_a_number : number;
    const source sign = (bits >> (From::bits - To::bits)) & To::sign_mask;
    return static_cast<target>(result | sign);
}

/// Gives a value of layout `From` in layout `To`, binary32 or binary64, that has more mantissa and
/// no fewer exponent bits: exact.
template <class To, class From>
DEMI_HD constexpr typename To::bits_type widen(typename From::bits_type bits) {
    using target = typename To::bits_type;
    using number = std::conditional_t<sizeof(target) == 4, float, double>;
    constexpr int added_bits = To::mantissa_bits - From::mantissa_bits;

    const target magnitude = static_cast<target>(bits) & From::magnitude_mask;
    target result = magnitude << added_bits;
    if constexpr (From::exponent_bits != To::exponent_bits) {
        // The significand becomes a float, whose exponent is then moved. Every value goes this way,
        // and conditions are numbers, so that compilers make no branch of them.
        constexpr target unit = target{From::mantissa_bits - From::min_exponent};
        constexpr target gap = target{To::max_exponent - From::max_exponent};
        const target exponent = magnitude >> From::mantissa_bits;
        const target mantissa = magnitude & From::mantissa_mask;
        const target is_normal = exponent != 0;
        const target is_nonzero = magnitude != 0;
        const target is_special = From::has_infinity && magnitude > From::max_finite_bits;
        const auto significand =
            static_cast<std::int32_t>(mantissa | (is_normal << From::mantissa_bits));
        const target distance = exponent - is_normal - unit + (is_special * gap);
        result = __builtin_bit_cast(target, static_cast<number>(significand)) +
                 ((distance << To::mantissa_bits) & (target{0} - is_nonzero));
    }
    result |= magnitude > From::largest_number_bits ? To::quiet_nan_bits : target{0};
    const target sign = static_cast<target>(bits & From::sign_mask) << (To::bits - From::bits);
    return result | sign;
}

template <class A, class B>
inline constexpr bool same_layout =
    A::bits == B::bits&& A::exponent_bits == B::exponent_bits&& A::has_infinity == B::has_infinity;

template <class Layout>
DEMI_HD constexpr typename Layout::bits_type limit_infinity(typename Layout::bits_type bits,
                                                            overflow mode) {
    using target = typename Layout::bits_type;
    const bool infinite =
        Layout::has_infinity && (bits & Layout::magnitude_mask) == Layout::overflow_bits;
    // The largest finite magnitude is the one before infinity.
    return static_cast<target>(bits - (infinite && mode == overflow::saturate ? 1 : 0));
}

/// Converts the bits of one layout to another with a single rounding.
template <class To, class From, class Rounding>
DEMI_HD constexpr typename To::bits_type recode(typename From::bits_type bits, Rounding rounding,
                                                overflow mode) {
    if constexpr (same_layout<To, From>) {
        return limit_infinity<To>(bits, mode);
    } else if constexpr (To::bits >= 32 && To::bits > From::bits) {
        return limit_infinity<To>(widen<To, From>(bits), mode);
    } else if constexpr (From::bits >= 32) {
        return narrow<To, From>(bits, rounding, mode);
    } else {
        return narrow<To, binary32_layout>(widen<binary32_layout, From>(bits), rounding, mode);
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
