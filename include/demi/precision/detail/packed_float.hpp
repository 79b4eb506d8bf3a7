// SPDX-License-Identifier: MIT
/// What the storage types float16, bfloat16 and float8 have in common.
#pragma once

#include <demi/precision/detail/float_codec.hpp>

#include <concepts>
#include <limits>

namespace demi::inline DEMI_ABI {
namespace detail {

/// A number of layout `Layout` in memory. It converts to float by itself, so comparison and
/// arithmetic happen in float; the way back rounds, so it is explicit.
template <class Derived, class Layout>
class packed_float {
public:
    using bits_type = typename Layout::bits_type;

    packed_float() = default;

    /// Rounds to nearest even; beyond the largest finite value gives infinity, or NaN in a format
    /// without infinity.
    DEMI_HD explicit constexpr packed_float(float value)
        : bits_(recode<Layout, binary32_layout>(__builtin_bit_cast(std::uint32_t, value),
                                                nearest_even{}, overflow::to_infinity)) {}

    /// The same from double, with a single rounding.
    DEMI_HD explicit constexpr packed_float(double value)
        : bits_(recode<Layout, binary64_layout>(__builtin_bit_cast(std::uint64_t, value),
                                                nearest_even{}, overflow::to_infinity)) {}

    /// The same from an integer; a single rounding up to 2^53.
    template <std::integral Integer>
    DEMI_HD explicit constexpr packed_float(Integer value)
        : packed_float(static_cast<double>(value)) {}

    DEMI_HD static constexpr Derived from_bits(bits_type bits) {
        return __builtin_bit_cast(Derived, bits);
    }

    DEMI_HD constexpr bits_type bits() const { return bits_; }

    /// The same value in float: exact.
    DEMI_HD constexpr operator float() const {
        return __builtin_bit_cast(
            float, recode<binary32_layout, Layout>(bits_, nearest_even{}, overflow::to_infinity));
    }

private:
    bits_type bits_;
};

/// `std::numeric_limits` of a storage type.
template <class T, class Layout>
struct packed_limits {
    static constexpr bool is_specialized = true;
    static constexpr bool is_signed = true;
    static constexpr bool is_integer = false;
    static constexpr bool is_exact = false;
    static constexpr bool is_bounded = true;
    static constexpr bool is_modulo = false;
    static constexpr bool is_iec559 = Layout::bits == 16 && Layout::exponent_bits == 5;
    static constexpr bool traps = false;
    static constexpr bool tinyness_before = false;
    static constexpr bool has_infinity = Layout::has_infinity;
    static constexpr bool has_quiet_NaN = true;
    static constexpr bool has_signaling_NaN = Layout::has_infinity;
    static constexpr std::float_round_style round_style = std::round_to_nearest;

    static constexpr int radix = 2;
    static constexpr int digits = Layout::mantissa_bits + 1;
    static constexpr int digits10 = Layout::mantissa_bits * 30103 / 100000;
    static constexpr int max_digits10 = 2 + digits * 30103 / 100000;
    static constexpr int min_exponent = Layout::min_exponent + 1;
    static constexpr int max_exponent = Layout::max_exponent + 1;
    static constexpr int min_exponent10 = -(-Layout::min_exponent * 30103 / 100000);
    static constexpr int max_exponent10 = max_exponent * 30103 / 100000;

    DEMI_HD static constexpr T min() noexcept { return T(Layout::min_normal); }
    DEMI_HD static constexpr T lowest() noexcept { return T(-Layout::max_finite); }
    DEMI_HD static constexpr T max() noexcept { return T(Layout::max_finite); }
    DEMI_HD static constexpr T epsilon() noexcept { return T(Layout::epsilon); }
    DEMI_HD static constexpr T round_error() noexcept { return T(0.5f); }
    DEMI_HD static constexpr T denorm_min() noexcept { return T(Layout::min_subnormal); }
    DEMI_HD static constexpr T infinity() noexcept {
        return T::from_bits(has_infinity ? Layout::overflow_bits : 0);
    }
    DEMI_HD static constexpr T quiet_NaN() noexcept { return T::from_bits(Layout::quiet_nan_bits); }
    DEMI_HD static constexpr T signaling_NaN() noexcept {
        return T::from_bits(has_infinity ? Layout::overflow_bits + 1 : 0);
    }
};

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
