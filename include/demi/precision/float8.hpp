// SPDX-License-Identifier: MIT
/// The two 8-bit formats of the OCP OFP8 specification.
#pragma once

#include <demi/precision/detail/packed_float.hpp>
#include <demi/precision/format_traits.hpp>

#include <cstdint>
#include <limits>
#include <string_view>

namespace demi::inline DEMI_ABI {

namespace detail {
using float8_e4m3_layout = binary_layout<std::uint8_t, 4, 3, false>;
using float8_e5m2_layout = binary_layout<std::uint8_t, 5, 2, true>;
}  // namespace detail

/// E4M3: 4 exponent and 3 mantissa bits, up to 448, no infinity. For weights and activations.
///
/// Converts to float by itself, exactly; from float or double only on demand, rounding to nearest
/// even, and to NaN beyond 464. Use `convert` with `overflow::saturate` to get 448 there.
class float8_e4m3 : public detail::packed_float<float8_e4m3, detail::float8_e4m3_layout> {
    using base = detail::packed_float<float8_e4m3, detail::float8_e4m3_layout>;

public:
    float8_e4m3() = default;
    using base::base;
};

/// E5M2: 5 exponent and 2 mantissa bits, up to 57344, with infinity. For gradients.
///
/// Converts to float by itself, exactly; from float or double only on demand, rounding to nearest
/// even, and to infinity from 61440 on.
class float8_e5m2 : public detail::packed_float<float8_e5m2, detail::float8_e5m2_layout> {
    using base = detail::packed_float<float8_e5m2, detail::float8_e5m2_layout>;

public:
    float8_e5m2() = default;
    using base::base;
};

template <>
struct format_traits<float8_e4m3> : detail::float8_e4m3_layout {
    static constexpr std::string_view name = "float8_e4m3";
};

template <>
struct format_traits<float8_e5m2> : detail::float8_e5m2_layout {
    static constexpr std::string_view name = "float8_e5m2";
};

static_assert(floating_format<float8_e4m3>);
static_assert(floating_format<float8_e5m2>);

}  // namespace demi::inline DEMI_ABI

template <>
struct std::numeric_limits<demi::float8_e4m3>
    : demi::detail::packed_limits<demi::float8_e4m3, demi::detail::float8_e4m3_layout> {};

template <>
struct std::numeric_limits<demi::float8_e5m2>
    : demi::detail::packed_limits<demi::float8_e5m2, demi::detail::float8_e5m2_layout> {};
