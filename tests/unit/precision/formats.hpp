// SPDX-License-Identifier: MIT
/// The formats under test, each with its description in the reference.
#pragma once

#include <demi/precision/convert.hpp>

#include <conformance/reference_conversion.hpp>

template <class T>
inline constexpr reference::format reference_of{};
template <>
inline constexpr reference::format reference_of<demi::float16> = reference::float16;
template <>
inline constexpr reference::format reference_of<demi::bfloat16> = reference::bfloat16;
template <>
inline constexpr reference::format reference_of<demi::float8_e4m3> = reference::float8_e4m3;
template <>
inline constexpr reference::format reference_of<demi::float8_e5m2> = reference::float8_e5m2;
template <>
inline constexpr reference::format reference_of<float> = reference::float32;
template <>
inline constexpr reference::format reference_of<double> = reference::float64;

#define DEMI_TEST_NARROW_FORMATS demi::float16, demi::bfloat16, demi::float8_e4m3, demi::float8_e5m2
