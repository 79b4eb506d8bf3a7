// SPDX-License-Identifier: MIT
/// The few functions that a scalar functor may call on its number type.
///
/// A functor that is a template over `Real` runs with `float`, `double`, or a pack of lanes. These
/// are the overloads for the first two; a pack brings its own, found by argument-dependent lookup.
/// In code outside namespace demi, `using demi::sqrt;` makes both visible.
#pragma once

#include <demi/core/config.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI {

template <class T>
concept scalar_real = std::same_as<T, float> || std::same_as<T, double>;

namespace detail {

// A compiler makes no vectors of a loop with a call that may set `errno`, as that of the built-in
// square root may. Each one has its own way to say that it must not, and nothing of that reaches
// the program's own calls.
#if defined(__clang__) && defined(__GLIBC__) && !defined(__CUDACC__)
namespace c_library {
extern "C" [[gnu::const]] float sqrtf(float) noexcept;
extern "C" [[gnu::const]] double sqrt(double) noexcept;
}  // namespace c_library
inline float root(float value) { return c_library::sqrtf(value); }
inline double root(double value) { return c_library::sqrt(value); }
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
inline float root(float value) {
    float (*function)(float) __attribute__((const)) = &__builtin_sqrtf;
    return function(value);
}
inline double root(double value) {
    double (*function)(double) __attribute__((const)) = &__builtin_sqrt;
    return function(value);
}
#else
DEMI_HD inline float root(float value) { return __builtin_sqrtf(value); }
DEMI_HD inline double root(double value) { return __builtin_sqrt(value); }
#endif

}  // namespace detail

/// The square root. It may leave `errno` alone, so that loops which call it become vectors.
template <scalar_real Real>
DEMI_HD inline Real sqrt(Real value) {
    return detail::root(value);
}

template <scalar_real Real>
DEMI_HD constexpr Real abs(Real value) {
    if constexpr (std::same_as<Real, float>) {
        return __builtin_fabsf(value);
    } else {
        return __builtin_fabs(value);
    }
}

/// The smaller value; the second one when the first is NaN.
template <scalar_real Real>
DEMI_HD constexpr Real min(Real left, std::type_identity_t<Real> right) {
    return left < right ? left : right;
}

/// The larger value; the second one when the first is NaN.
template <scalar_real Real>
DEMI_HD constexpr Real max(Real left, std::type_identity_t<Real> right) {
    return left > right ? left : right;
}

template <scalar_real Real>
DEMI_HD constexpr Real select(bool condition, Real if_true, std::type_identity_t<Real> if_false) {
    return condition ? if_true : if_false;
}

/// What goes with a number type: `wide`, for sums that must not overflow, `narrow`, for short ones,
/// and `bits`, for tests that hold under fast-math flags.
template <class Real>
struct real_traits;

template <>
struct real_traits<float> {
    using wide = double;
    using narrow = float;
    using bits = std::uint32_t;
    static constexpr std::uint64_t infinity_bits = 0x7f800000;
};

template <>
struct real_traits<double> {
    using wide = double;
    using narrow = double;
    using bits = std::uint64_t;
    static constexpr std::uint64_t infinity_bits = 0x7ff0000000000000;
};

template <scalar_real Real>
DEMI_HD constexpr double widen(Real value) {
    return static_cast<double>(value);
}

/// The bits without the sign: they order as the magnitudes do, NaN above infinity.
template <scalar_real Real>
DEMI_HD constexpr typename real_traits<Real>::bits magnitude_bits(Real value) {
    using bits = typename real_traits<Real>::bits;
    return __builtin_bit_cast(bits, value) & (static_cast<bits>(-1) >> 1);
}

DEMI_HD constexpr std::uint32_t max(std::uint32_t left, std::uint32_t right) {
    return left > right ? left : right;
}
DEMI_HD constexpr std::uint64_t max(std::uint64_t left, std::uint64_t right) {
    return left > right ? left : right;
}

/// Adds the square of a value to a narrow sum.
template <scalar_real Real>
DEMI_HD constexpr void add_square(Real& sum, std::type_identity_t<Real> value) {
    sum += value * value;
}

/// Sums the lanes of a wide or narrow value in a fixed order.
DEMI_HD constexpr double sum_lanes(double value) { return value; }

/// The largest of the lanes.
DEMI_HD constexpr std::uint32_t max_lanes(std::uint32_t value) { return value; }
DEMI_HD constexpr std::uint64_t max_lanes(std::uint64_t value) { return value; }

}  // namespace demi::inline DEMI_ABI
