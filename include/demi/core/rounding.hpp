// SPDX-License-Identifier: MIT
/// How a value is rounded to a narrower format, and what happens beyond its largest value.
#pragma once

#include <demi/core/config.hpp>

#include <concepts>
#include <cstdint>

namespace demi::inline DEMI_ABI {

/// Round to nearest, ties to even: the default everywhere.
struct nearest_even {};

/// Drop the excess bits.
struct toward_zero {};

/// Round up with a probability equal to the dropped fraction; over a tensor list.
///
/// The random bits are a pure function of (seed, step, tensor, index), so the result is the same on
/// any thread count, rank or restart. See `random_bits` in precision/random_bits.hpp.
struct stochastic {
    std::uint64_t seed = 0;
    std::uint64_t step = 0;
};

/// Stochastic rounding over a tensor list, with the step from the backend's memory: it is read
/// where the work runs, so that nobody waits for it.
struct stochastic_by_counter {
    std::uint64_t seed = 0;
    const std::uint64_t* step = nullptr;

    DEMI_HD stochastic load() const { return {seed, *step}; }
};

/// Stochastic rounding of one value with these 32 random bits.
struct stochastic_bits {
    std::uint32_t bits = 0;
};

/// What a finite value (or infinity) beyond the largest finite value of the target becomes.
enum class overflow : std::uint8_t {
    to_infinity,  ///< infinity, or NaN in a format without one (OCP non-saturating mode)
    saturate,     ///< the largest finite value with the same sign, for infinity too; NaN stays NaN
};

template <class T>
concept list_rounding = std::same_as<T, nearest_even> || std::same_as<T, toward_zero> ||
    std::same_as<T, stochastic> || std::same_as<T, stochastic_by_counter>;

}  // namespace demi::inline DEMI_ABI
