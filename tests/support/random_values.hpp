// SPDX-License-Identifier: MIT
/// Random values of any format, finite or not.
#pragma once

#include <demi/precision/convert.hpp>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

/// Any finite value of a format: random bits.
template <class T>
T random_finite(std::mt19937_64& random) {
    for (;;) {
        const auto value = demi::from_bits<T>(static_cast<demi::bits_of<T>>(random()));
        if (demi::is_finite(value)) return value;
    }
}

/// A NaN of any payload and sign, or an infinity where the format has one.
template <class T>
T random_non_finite(std::mt19937_64& random) {
    using format = demi::format_traits<T>;
    const auto word = random();
    const auto sign = word & format::sign_mask;
    const auto payload = word >> 40 & format::mantissa_mask;
    const auto magnitude = !format::has_infinity ? format::magnitude_mask
                           : random() % 2 == 0   ? format::exponent_mask
                                                 : format::exponent_mask | payload;
    return demi::from_bits<T>(static_cast<demi::bits_of<T>>(sign | magnitude));
}

/// Values of both signs with magnitudes from 2^low to 2^high.
template <class T>
std::vector<T> random_vector(std::mt19937_64& random, std::size_t count, int low, int high) {
    std::vector<T> values(count);
    for (T& value : values) {
        const double mantissa = 1.0 + static_cast<double>(random() % 4096) / 4096;
        const int exponent = low + static_cast<int>(random() % static_cast<unsigned>(high - low));
        value = demi::convert<T>(std::ldexp(random() % 2 == 0 ? mantissa : -mantissa, exponent));
    }
    return values;
}
