// SPDX-License-Identifier: MIT
/// Conversion of one value in device code: the bits of `demi::convert`, by instructions where they
/// agree with it.
#pragma once

#include <demi/core/rounding.hpp>
#include <demi/precision/convert.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI {

namespace detail {

template <class T>
inline constexpr bool is_binary16 = same_format<T, float16>;
template <class T>
inline constexpr bool is_brain16 = same_format<T, bfloat16>;
template <class T>
inline constexpr bool is_binary32 = same_format<T, float>;

__device__ inline std::uint16_t float16_bits_of(float value, nearest_even) {
    std::uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
__device__ inline std::uint16_t float16_bits_of(float value, toward_zero) {
    std::uint16_t bits;
    asm("cvt.rz.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ inline float float_of_float16(std::uint16_t bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

/// To nearest even by an addition whose carry goes where it should; NaN apart.
__device__ inline std::uint16_t bfloat16_bits_of(std::uint32_t bits, nearest_even) {
    return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
__device__ inline std::uint16_t bfloat16_bits_of(std::uint32_t bits, toward_zero) {
    return static_cast<std::uint16_t>(bits >> 16);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
inline constexpr bool has_float8_instructions = true;

/// The nearest value of a format of 8 bits, the largest finite one beyond that; NaN apart.
template <class Format>
__device__ std::uint8_t float8_bits_of(float value) {
    std::uint16_t pair;
    if constexpr (Format::has_infinity) {
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    } else {
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    }
    return static_cast<std::uint8_t>(pair);
}

template <class Format>
__device__ float float_of_float8(std::uint8_t bits) {
    std::uint32_t pair;
    if constexpr (Format::has_infinity) {
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(pair) : "h"(std::uint16_t{bits}));
    } else {
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(std::uint16_t{bits}));
    }
    return float_of_float16(static_cast<std::uint16_t>(pair));
}
#else
inline constexpr bool has_float8_instructions = false;
template <class Format>
__device__ std::uint8_t float8_bits_of(float value);
template <class Format>
__device__ float float_of_float8(std::uint8_t bits);
#endif

/// What saturation gave, or what is beyond the largest value where that is wanted. The limit is
/// half way to the next value if there were one, and belongs to the even of the two.
template <class Format>
__device__ std::uint8_t unless_beyond(std::uint8_t saturated, float value, overflow mode) {
    constexpr auto limit = static_cast<float>(
        Format::max_finite + power_of_two(Format::max_exponent - Format::mantissa_bits - 1));
    constexpr bool limit_is_beyond = Format::max_finite_bits % 2 != 0;
    const float magnitude = fabsf(value);
    const bool beyond = limit_is_beyond ? magnitude >= limit : magnitude > limit;
    if (mode == overflow::saturate || !beyond) return saturated;
    return static_cast<std::uint8_t>((saturated & Format::sign_mask) | Format::overflow_bits);
}

template <class Rounding>
inline constexpr bool is_instruction_rounding =
    std::same_as<Rounding, nearest_even> || std::same_as<Rounding, toward_zero>;

}  // namespace detail

/// `demi::convert` for device code. The instructions lose what a NaN carries, so NaN goes another
/// way.
template <floating_format To, floating_format From, scalar_rounding Rounding = nearest_even>
__device__ std::remove_cv_t<To> device_convert(const From& value, Rounding rounding = {},
                                               overflow mode = overflow::to_infinity) {
    using detail::is_binary16;
    using detail::is_binary32;
    using detail::is_brain16;
    using detail::limit_infinity;
    using target = typename format_traits<std::remove_cv_t<To>>::layout;
    constexpr bool narrows = is_binary32<From> && detail::is_instruction_rounding<Rounding>;
    const bits_of<From> bits = to_bits(value);
    if constexpr (narrows && is_binary16<To>) {
        if (!is_nan(value)) {
            const auto half = detail::float16_bits_of(__builtin_bit_cast(float, value), rounding);
            return from_bits<To>(limit_infinity<target>(half, mode));
        }
    } else if constexpr (is_binary16<From> && is_binary32<To>) {
        if (!is_nan(value)) {
            const float number = detail::float_of_float16(bits);
            return from_bits<To>(limit_infinity<target>(to_bits(number), mode));
        }
    } else if constexpr (detail::has_float8_instructions && sizeof(From) == 1 && is_binary32<To>) {
        if (!is_nan(value)) {
            using source = typename format_traits<std::remove_cv_t<From>>::layout;
            const float number = detail::float_of_float8<source>(bits);
            return from_bits<To>(limit_infinity<target>(to_bits(number), mode));
        }
    } else if constexpr (narrows && is_brain16<To>) {
        if (!is_nan(value)) {
            return from_bits<To>(
                limit_infinity<target>(detail::bfloat16_bits_of(bits, rounding), mode));
        }
    } else if constexpr (detail::has_float8_instructions && std::same_as<Rounding, nearest_even> &&
                         sizeof(From) <= 4 && sizeof(From) >= 2 && sizeof(To) == 1) {
        if (!is_nan(value)) {
            const float number = device_convert<float>(value);
            const std::uint8_t saturated = detail::float8_bits_of<target>(number);
            return from_bits<To>(detail::unless_beyond<target>(saturated, number, mode));
        }
    }
    return from_bits<To>(convert_bits<To, From>(bits, rounding, mode));
}

}  // namespace demi::inline DEMI_ABI
