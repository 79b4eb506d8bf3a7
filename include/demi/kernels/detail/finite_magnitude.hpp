// SPDX-License-Identifier: MIT
/// The largest finite magnitude of what passes: the definition that every amax shares.
#pragma once

#include <demi/core/real.hpp>
#include <demi/precision/convert.hpp>

#include <concepts>
#include <cstdint>

namespace demi::inline DEMI_ABI {
namespace detail {

/// The bits of a value's magnitude in float, of a pack the largest ones. NaN and infinity, and what
/// float holds as such, count as 0.
template <class Real>
DEMI_FLATTEN DEMI_HD std::uint32_t finite_magnitude_bits(const Real& value) {
    if constexpr (std::same_as<Real, double>) {
        return detail::finite_magnitude_bits(convert<float>(value));
    } else if constexpr (std::same_as<Real, float>) {
        return is_finite(value) ? magnitude_bits(value) : 0;
    } else {
        return max_lanes(magnitude_bits(select(is_finite(value), value, Real(0.0f))));
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
