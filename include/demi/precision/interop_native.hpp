// SPDX-License-Identifier: MIT
/// Makes the 16-bit types of the compiler formats of demi, where it has them.
#pragma once

#include <demi/precision/bfloat16.hpp>
#include <demi/precision/float16.hpp>
#include <demi/precision/format_traits.hpp>

#if defined(__STDCPP_FLOAT16_T__) || defined(__STDCPP_BFLOAT16_T__)
#include <stdfloat>
#endif

namespace demi::inline DEMI_ABI {

// The type of std::float16_t is _Float16 and that of std::bfloat16_t is __bf16 wherever a compiler
// has both, so that there is one specialisation for each pair.

#if defined(__FLT16_MANT_DIG__)
namespace detail {
__extension__ typedef _Float16 native_float16;
}
template <>
struct format_traits<detail::native_float16> : format_traits<float16> {};
#elif defined(__STDCPP_FLOAT16_T__)
template <>
struct format_traits<std::float16_t> : format_traits<float16> {};
#endif

#if defined(__BFLT16_MANT_DIG__)
namespace detail {
__extension__ typedef __bf16 native_bfloat16;
}
template <>
struct format_traits<detail::native_bfloat16> : format_traits<bfloat16> {};
#elif defined(__STDCPP_BFLOAT16_T__)
template <>
struct format_traits<std::bfloat16_t> : format_traits<bfloat16> {};
#endif

}  // namespace demi::inline DEMI_ABI
