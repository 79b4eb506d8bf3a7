// SPDX-License-Identifier: MIT
/// Conversion of the elements that a thread holds together.
#pragma once

#include <demi/cuda/convert.cuh>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

/// Whether an instruction converts all values but NaN as `demi::convert` does.
template <class To, class From, class Rounding>
inline constexpr bool has_conversion_instruction = (std::same_as<From, float> && is_binary16<To> &&
                                                    is_instruction_rounding<Rounding>) ||
                                                   (is_binary16<From> && std::same_as<To, float>);

/// `convert` for what is no NaN.
template <class To, class From, class Rounding>
__device__ To convert_number(const From& from, Rounding rounding) {
    if constexpr (std::same_as<From, float>) {
        return from_bits<To>(float16_bits_of(from, rounding));
    } else {
        return float_of_float16(to_bits(from));
    }
}

/// One comparison, where the bits would take two instructions.
template <class T>
__device__ bool is_float_nan(const T& value) {
    if constexpr (std::same_as<T, float>) {
        return value != value;
    } else {
        return false;
    }
}

/// The bits of `demi::convert`, `rounding_at(i)` being the rounding of the i-th element. One test
/// tells whether any of them is NaN.
template <class To, class From, std::size_t Size, class RoundingAt>
__device__ void convert_group(const From (&from)[Size], To (&to)[Size],
                              const RoundingAt& rounding_at) {
    using rounding = std::remove_cvref_t<decltype(rounding_at(std::size_t{}))>;
    if constexpr (has_conversion_instruction<To, From, rounding>) {
        bool any_nan = false;
#pragma unroll
        for (std::size_t i = 0; i < Size; ++i) {
            to[i] = convert_number<To>(from[i], rounding_at(i));
            any_nan |= is_float_nan(from[i]) || is_float_nan(to[i]);
        }
        if (!any_nan) return;
    }
#pragma unroll
    for (std::size_t i = 0; i < Size; ++i) {
        to[i] = from_bits<To>(convert_bits<To, From>(to_bits(from[i]), rounding_at(i)));
    }
}

}  // namespace demi::inline DEMI_ABI::detail
