// SPDX-License-Identifier: MIT
/// Conversion written a second time, in double arithmetic, for the tests to compare with.
///
/// Shares nothing with the library but the template arguments. Every value that it computes with is
/// a normal double, so flags for subnormals and -ffast-math do not matter; nearest even is found
/// with floor, so the rounding mode does not either.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace reference {

struct format {
    int bits;
    int exponent_bits;
    int mantissa_bits;
    bool has_infinity;

    int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    std::uint64_t sign_bit() const { return std::uint64_t{1} << (bits - 1); }
    std::uint64_t exponent_field() const {
        return ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
    }
    /// Codes of magnitudes count up to this one.
    std::uint64_t max_finite() const {
        return has_infinity ? exponent_field() - 1 : sign_bit() - 2;
    }
    std::uint64_t infinity_or_nan() const { return max_finite() + 1; }
    bool is_nan(std::uint64_t code) const {
        return (code & (sign_bit() - 1)) > (has_infinity ? exponent_field() : max_finite());
    }
};

inline constexpr format float16{16, 5, 10, true};
inline constexpr format bfloat16{16, 8, 7, true};
inline constexpr format float8_e4m3{8, 4, 3, false};
inline constexpr format float8_e5m2{8, 5, 2, true};
inline constexpr format float32{32, 8, 23, true};
inline constexpr format float64{64, 11, 52, true};

/// The value of a magnitude code; the code after the largest finite one counts on. Not for
/// subnormal float64.
inline double decode(const format& f, std::uint64_t magnitude) {
    const auto exponent = static_cast<int>(magnitude >> f.mantissa_bits);
    const std::uint64_t hidden = std::uint64_t{exponent == 0 ? 0u : 1u} << f.mantissa_bits;
    const std::uint64_t mantissa = magnitude & ((std::uint64_t{1} << f.mantissa_bits) - 1);
    const int scale = (exponent == 0 ? 1 : exponent) - f.bias() - f.mantissa_bits;
    return std::ldexp(static_cast<double>(mantissa | hidden), scale);
}

enum class rounding { nearest_even, toward_zero };

/// The magnitude code of a finite value that is not negative.
inline std::uint64_t encode(const format& f, double value, rounding mode, bool saturate) {
    if (value <= 0) return 0;
    const int smallest = 1 - f.bias();
    int exponent = std::ilogb(value);
    if (exponent < smallest) exponent = smallest;
    const double scaled = std::ldexp(value, f.mantissa_bits - exponent);
    double whole = std::floor(scaled);
    const double rest = scaled - whole;
    const bool odd = std::floor(whole / 2) * 2 < whole;
    if (mode == rounding::nearest_even && (rest > 0.5 || (rest >= 0.5 && odd))) whole += 1;

    const double two_to_mantissa = std::ldexp(1.0, f.mantissa_bits);
    if (whole >= 2 * two_to_mantissa) {
        whole /= 2;
        ++exponent;
    }
    const auto significand = static_cast<std::uint64_t>(whole);
    if (whole < two_to_mantissa) return significand;
    if (exponent > f.bias() + 1) exponent = f.bias() + 2;
    const std::uint64_t code =
        (static_cast<std::uint64_t>(exponent + f.bias()) << f.mantissa_bits) + significand -
        (std::uint64_t{1} << f.mantissa_bits);
    if (code <= f.max_finite()) return code;
    return saturate || mode == rounding::toward_zero ? f.max_finite() : f.infinity_or_nan();
}

/// The magnitudes where rounding to `f` may go wrong, as codes of `source`: for every magnitude
/// of `f`, the value itself, the midpoint between it and the next one, and both neighbours of each.
inline std::vector<std::uint64_t> boundaries(const format& f, const format& source) {
    std::vector<std::uint64_t> codes;
    for (std::uint64_t code = 0; code <= f.max_finite(); ++code) {
        const double low = decode(f, code);
        const double middle = (low + decode(f, code + 1)) / 2;
        for (const double value : {low, middle}) {
            const std::uint64_t at = encode(source, value, rounding::nearest_even, false);
            if (at > 0) codes.push_back(at - 1);
            codes.push_back(at);
            codes.push_back(at + 1);
        }
    }
    return codes;
}

}  // namespace reference
