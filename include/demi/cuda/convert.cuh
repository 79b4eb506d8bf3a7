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

template <class Rounding>
inline constexpr bool is_instruction_rounding =
    std::same_as<Rounding, nearest_even> || std::same_as<Rounding, toward_zero>;

}  // namespace detail

/// `demi::convert` for device code. The instructions lose what a NaN carries, so NaN goes another
/// way.
template <floating_format To, floating_format From, scalar_rounding Rounding = nearest_even>
__device__ std::remove_cv_t<To> device_convert(const From& value, Rounding rounding = {}) {
    using detail::is_binary16;
    using detail::is_binary32;
    using detail::is_brain16;
    const bits_of<From> bits = to_bits(value);
    if constexpr (is_binary32<From> && is_binary16<To> &&
                  detail::is_instruction_rounding<Rounding>) {
        if (!is_nan(value)) {
            return from_bits<To>(
                detail::float16_bits_of(__builtin_bit_cast(float, value), rounding));
        }
    } else if constexpr (is_binary16<From> && is_binary32<To>) {
        if (!is_nan(value)) {
            return __builtin_bit_cast(std::remove_cv_t<To>, detail::float_of_float16(bits));
        }
    } else if constexpr (is_binary32<From> && is_brain16<To> &&
                         detail::is_instruction_rounding<Rounding>) {
        if (!is_nan(value)) return from_bits<To>(detail::bfloat16_bits_of(bits, rounding));
    }
    return from_bits<To>(convert_bits<To, From>(bits, rounding));
}

}  // namespace demi::inline DEMI_ABI
