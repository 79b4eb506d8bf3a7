// SPDX-License-Identifier: MIT
/// The upper half of a float: 8 exponent bits, 7 mantissa bits, the range of float.
#pragma once

#include <demi/precision/detail/packed_float.hpp>
#include <demi/precision/format_traits.hpp>

#include <cstdint>
#include <limits>
#include <string_view>

namespace demi::inline DEMI_ABI {

namespace detail {
using bfloat16_layout = binary_layout<std::uint16_t, 8, 7, true>;
}

/// A bfloat16 number in memory.
///
/// Converts to float by itself, exactly; from float or double only on demand, rounding to nearest
/// even. Comparison and arithmetic happen in float. Trivially copyable, 2 bytes, no initial value.
/// Subnormals are kept both ways, unlike in the dot-product instructions of some processors.
class bfloat16 : public detail::packed_float<bfloat16, detail::bfloat16_layout> {
    using base = detail::packed_float<bfloat16, detail::bfloat16_layout>;

public:
    bfloat16() = default;
    using base::base;
};

template <>
struct format_traits<bfloat16> : detail::bfloat16_layout {
    static constexpr std::string_view name = "bfloat16";
};

static_assert(floating_format<bfloat16>);

}  // namespace demi::inline DEMI_ABI

template <>
struct std::numeric_limits<demi::bfloat16>
    : demi::detail::packed_limits<demi::bfloat16, demi::detail::bfloat16_layout> {};
