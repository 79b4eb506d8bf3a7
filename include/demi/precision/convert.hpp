// SPDX-License-Identifier: MIT
/// Conversion of one value between any two formats.
#pragma once

#include <demi/core/rounding.hpp>
#include <demi/precision/bfloat16.hpp>
#include <demi/precision/detail/float_codec.hpp>
#include <demi/precision/float16.hpp>
#include <demi/precision/float8.hpp>
#include <demi/precision/format_traits.hpp>

#include <concepts>
#include <type_traits>

namespace demi::inline DEMI_ABI {

/// A rounding of one value.
template <class T>
concept scalar_rounding = std::same_as<T, nearest_even> || std::same_as<T, toward_zero> ||
    std::same_as<T, stochastic_bits>;

/// Converts the bits of a `From` to those of a `To`: what `convert` does, where a value must not
/// even pass through a floating-point variable, such as a NaN under -ffast-math.
template <floating_format To, floating_format From, scalar_rounding Rounding = nearest_even>
DEMI_HD constexpr bits_of<To> convert_bits(bits_of<From> bits, Rounding rounding = {},
                                           overflow mode = overflow::to_infinity) {
    return detail::recode<typename format_traits<std::remove_cv_t<To>>::layout,
                          typename format_traits<std::remove_cv_t<From>>::layout>(bits, rounding,
                                                                                  mode);
}

/// Converts a value with one rounding, whatever the two formats.
///
/// Subnormals are kept. A NaN stays a NaN: its sign and the upper bits of its payload are kept, and
/// it becomes quiet; a copy between two types of one format keeps every bit. A finite value that
/// rounds beyond the largest finite one becomes infinity, NaN in a format without infinity, or
/// the largest finite value, as `mode` and `rounding` say: `toward_zero` never leaves the finite
/// values; `stochastic_bits` goes up from the largest one with the probability that it would have
/// if the format went on. An infinity follows `mode` alone.
///
/// The result depends on the arguments only: not on the rounding mode, flush-to-zero flags, or
/// compiler flags, and it is the same in a constant expression.
template <floating_format To, floating_format From, scalar_rounding Rounding = nearest_even>
DEMI_HD constexpr std::remove_cv_t<To> convert(const From& value, Rounding rounding = {},
                                               overflow mode = overflow::to_infinity) {
    return from_bits<To>(convert_bits<To, From>(to_bits(value), rounding, mode));
}

}  // namespace demi::inline DEMI_ABI
