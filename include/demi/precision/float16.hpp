// SPDX-License-Identifier: MIT
/// The 16-bit format of IEEE 754: 5 exponent bits, 10 mantissa bits, up to 65504.
#pragma once

#include <demi/precision/detail/packed_float.hpp>
#include <demi/precision/format_traits.hpp>

#include <cstdint>
#include <limits>
#include <string_view>

namespace demi::inline DEMI_ABI {

namespace detail {
using binary16_layout = binary_layout<std::uint16_t, 5, 10, true>;
}

/// A half-precision number in memory.
///
/// Converts to float by itself, exactly; from float or double only on demand, rounding to nearest
/// even. Comparison and arithmetic happen in float. Trivially copyable, 2 bytes, no initial value.
class float16 : public detail::packed_float<float16, detail::binary16_layout> {
    using base = detail::packed_float<float16, detail::binary16_layout>;

public:
    float16() = default;
    using base::base;
};

template <>
struct format_traits<float16> : detail::binary16_layout {
    static constexpr std::string_view name = "float16";
};

static_assert(floating_format<float16>);

}  // namespace demi::inline DEMI_ABI

template <>
struct std::numeric_limits<demi::float16>
    : demi::detail::packed_limits<demi::float16, demi::detail::binary16_layout> {};
