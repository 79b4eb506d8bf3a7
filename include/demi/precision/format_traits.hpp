// SPDX-License-Identifier: MIT
/// What demi knows of a number format; specialise it and your type works everywhere.
#pragma once

#include <demi/core/config.hpp>

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace demi::inline DEMI_ABI {

/// The facts about the format of `T`; the primary template is undefined.
///
/// A specialisation for a foreign type that has the bits of a known one is a single line:
/// `template <> struct demi::format_traits<my_half> : demi::format_traits<demi::float16> {};`.
/// The type must be trivially copyable. See `detail::binary_layout` for the members; `name` is the
/// only one that it lacks.
template <class T>
struct format_traits;

namespace detail {

DEMI_HD constexpr double power_of_two(int exponent) {
    const auto bits = exponent >= -1022 ? static_cast<std::uint64_t>(exponent + 1023) << 52
                                        : std::uint64_t{1} << (exponent + 1074);
    return __builtin_bit_cast(double, bits);
}

/// A binary format: sign, biased exponent, mantissa with hidden bit, subnormals.
///
/// With infinity it follows IEEE 754: the largest exponent means infinity and NaN. Without, it
/// follows OCP E4M3: only the magnitude of all ones is NaN, everything else is a number.
template <class Bits, int ExponentBits, int MantissaBits, bool HasInfinity>
struct binary_layout {
    using bits_type = Bits;
    using layout = binary_layout;

    static constexpr int bits = 1 + ExponentBits + MantissaBits;
    static constexpr int exponent_bits = ExponentBits;
    static constexpr int mantissa_bits = MantissaBits;  ///< stored ones, without the hidden bit
    static constexpr bool has_infinity = HasInfinity;

    static constexpr int exponent_bias = (1 << (ExponentBits - 1)) - 1;
    static constexpr int min_exponent = 1 - exponent_bias;  ///< of the smallest normal
    static constexpr int max_exponent = HasInfinity ? exponent_bias : exponent_bias + 1;

    static constexpr Bits sign_mask = static_cast<Bits>(Bits{1} << (bits - 1));
    static constexpr Bits magnitude_mask = static_cast<Bits>(sign_mask - 1);
    static constexpr Bits mantissa_mask = static_cast<Bits>((Bits{1} << MantissaBits) - 1);
    static constexpr Bits exponent_mask = static_cast<Bits>(magnitude_mask - mantissa_mask);
    static constexpr Bits max_finite_bits =
        static_cast<Bits>((HasInfinity ? exponent_mask : magnitude_mask) - 1);
    /// What a value beyond the largest finite one becomes: infinity, or NaN.
    static constexpr Bits overflow_bits = static_cast<Bits>(max_finite_bits + 1);
    static constexpr Bits quiet_nan_bits = static_cast<Bits>(
        HasInfinity ? exponent_mask | (Bits{1} << (MantissaBits - 1)) : magnitude_mask);
    /// The magnitude of every NaN is above this one.
    static constexpr Bits largest_number_bits =
        static_cast<Bits>(HasInfinity ? exponent_mask : max_finite_bits);

    static constexpr double max_finite =
        static_cast<double>((Bits{1} << MantissaBits) + (max_finite_bits & mantissa_mask)) *
        power_of_two(max_exponent - MantissaBits);
    static constexpr double min_normal = power_of_two(min_exponent);
    static constexpr double min_subnormal = power_of_two(min_exponent - MantissaBits);
    /// Distance from 1 to the next larger value.
    static constexpr double epsilon = power_of_two(-MantissaBits);
};

using binary32_layout = binary_layout<std::uint32_t, 8, 23, true>;
using binary64_layout = binary_layout<std::uint64_t, 11, 52, true>;

}  // namespace detail

template <>
struct format_traits<float> : detail::binary32_layout {
    static constexpr std::string_view name = "float32";
};

template <>
struct format_traits<double> : detail::binary64_layout {
    static constexpr std::string_view name = "float64";
};

/// A type whose values demi can read and write: `format_traits` is there, and describes all of it.
template <class T>
concept floating_format = std::is_trivially_copyable_v<T> && requires {
    typename format_traits<std::remove_cv_t<T>>::bits_type;
    requires sizeof(T) == sizeof(typename format_traits<std::remove_cv_t<T>>::bits_type);
    requires format_traits<std::remove_cv_t<T>>::bits == 8 * sizeof(T);
};

/// The unsigned integer that holds the bits of a `T`.
template <floating_format T>
using bits_of = typename format_traits<std::remove_cv_t<T>>::bits_type;

/// Whether two types have the same bits for the same values, so that copying them converts.
template <class A, class B>
inline constexpr bool same_format =
    format_traits<std::remove_cv_t<A>>::bits ==
    format_traits<std::remove_cv_t<B>>::bits&& format_traits<std::remove_cv_t<A>>::exponent_bits ==
    format_traits<std::remove_cv_t<B>>::exponent_bits&&
        format_traits<std::remove_cv_t<A>>::has_infinity ==
    format_traits<std::remove_cv_t<B>>::has_infinity;

/// The bits of a value.
template <floating_format T>
DEMI_HD constexpr bits_of<T> to_bits(const T& value) {
    // A bit cast of a class in memory keeps g++ 12 from vectorising a loop; reading a member does
    // not.
    if constexpr (requires { requires std::same_as<decltype(value.bits()), bits_of<T>>; }) {
        return value.bits();
    } else {
        return __builtin_bit_cast(bits_of<T>, value);
    }
}

/// The value with these bits.
template <floating_format T>
DEMI_HD constexpr std::remove_cv_t<T> from_bits(bits_of<T> bits) {
    return __builtin_bit_cast(std::remove_cv_t<T>, bits);
}

/// Whether a value is NaN. Looks at the bits, as the two functions below do, and so holds under
/// -ffast-math.
template <floating_format T>
DEMI_HD constexpr bool is_nan(const T& value) {
    using format = format_traits<T>;
    return (to_bits(value) & format::magnitude_mask) > format::largest_number_bits;
}

/// Whether a value is infinite; NaN is not.
template <floating_format T>
DEMI_HD constexpr bool is_infinite(const T& value) {
    using format = format_traits<T>;
    return format::has_infinity &&
           (to_bits(value) & format::magnitude_mask) == format::overflow_bits;
}

/// Whether a value is neither infinite nor NaN.
template <floating_format T>
DEMI_HD constexpr bool is_finite(const T& value) {
    using format = format_traits<T>;
    return (to_bits(value) & format::magnitude_mask) <= format::max_finite_bits;
}

}  // namespace demi::inline DEMI_ABI
