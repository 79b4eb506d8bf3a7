// SPDX-License-Identifier: MIT
/// Makes Eigen's 16-bit types formats of demi; Eigen itself is not included.
#pragma once

#include <demi/precision/bfloat16.hpp>
#include <demi/precision/float16.hpp>
#include <demi/precision/format_traits.hpp>

namespace Eigen {
struct half;
struct bfloat16;
}  // namespace Eigen

namespace demi::inline DEMI_ABI {

template <>
struct format_traits<Eigen::half> : format_traits<float16> {};

template <>
struct format_traits<Eigen::bfloat16> : format_traits<bfloat16> {};

}  // namespace demi::inline DEMI_ABI
