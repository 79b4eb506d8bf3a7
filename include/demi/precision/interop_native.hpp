// SPDX-License-Identifier: MIT
/// Makes the 16-bit types of the compiler formats of demi, where it has them.
#pragma once

#include <demi/precision/bfloat16.hpp>
#include <demi/precision/float16.hpp>
#include <demi/precision/format_traits.hpp>

#if __has_include(<stdfloat>)
#include <stdfloat>
#endif

namespace demi::inline DEMI_ABI {

// std::float16_t and std::bfloat16_t are other names of the first type in each pair, where both
// exist.

#if defined(__FLT16_MANT_DIG__)
template <>
struct format_traits<_Float16> : format_traits<float16> {};
#elif defined(__STDCPP_FLOAT16_T__)
template <>
struct format_traits<std::float16_t> : format_traits<float16> {};
#endif

#if defined(__BFLT16_MANT_DIG__)
template <>
struct format_traits<__bf16> : format_traits<bfloat16> {};
#elif defined(__STDCPP_BFLOAT16_T__)
template <>
struct format_traits<std::bfloat16_t> : format_traits<bfloat16> {};
#endif

}  // namespace demi::inline DEMI_ABI
