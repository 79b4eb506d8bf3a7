// SPDX-License-Identifier: MIT
/// Epilogues that watch the result of a GEMM: its largest magnitude, and whether it is finite.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/core/detail/shared_maximum.hpp>
#include <demi/core/error.hpp>
#include <demi/core/real.hpp>
#include <demi/kernels/detail/finite_magnitude.hpp>
#include <demi/precision/convert.hpp>

#include <concepts>
#include <cstdint>

namespace demi::inline DEMI_ABI {

namespace detail {

/// The bits of the least float whose magnitude becomes infinity or NaN when it is rounded to `T`.
template <floating_format T>
constexpr std::uint32_t find_non_finite_bound() {
    std::uint32_t finite = 0;
    std::uint32_t bound = format_traits<float>::overflow_bits;
    while (bound - finite > 1) {
        const std::uint32_t middle = finite + (bound - finite) / 2;
        const bits_of<T> rounded = convert_bits<T, float>(middle);
        (rounded <= format_traits<T>::max_finite_bits ? finite : bound) = middle;
    }
    return bound;
}

template <floating_format T>
inline constexpr std::uint32_t non_finite_bound = find_non_finite_bound<T>();

/// Whether a value, or one of a pack, is not finite once it is rounded to `Stored`.
template <class Stored, class Real>
DEMI_FLATTEN DEMI_HD bool becomes_non_finite(const Real& value) {
    if constexpr (std::same_as<Real, double>) {
        return !is_finite(convert<Stored>(value));
    } else {
        constexpr std::uint32_t bound = non_finite_bound<Stored>;
        return !(max_lanes(magnitude_bits(value)) < bound);
    }
}

template <class T>
void require_watch_target(const char* who, const char* name, const char* expected, const T* place) {
    if (place != nullptr) return;
    raise(invalid_argument(
        message(who, ": ", name, " is null, expected ", expected, " in the backend's memory")));
}

}  // namespace detail

/// Raises a float, 0 or more before, to the largest finite magnitude that passes, as
/// `float8_scaling::amax` is raised; the value passes unchanged.
///
/// `bias(b) | gelu{} | raise_amax(amax) | flag_non_finite<float16>(flag)` finds the factor of the
/// next scaled conversion, and whether a step has to be skipped, without a pass of their own.
///
/// NaN and infinity do not count, nor does a double beyond float, to which the others are rounded.
/// What comes before it in a composition has been done. Throws `invalid_argument` for a null
/// pointer. Any number of threads and products may raise one float; deterministic.
class raise_amax {
public:
    explicit raise_amax(float* amax) : amax_(amax) {
        detail::require_watch_target("raise_amax", "amax", "a float", amax);
    }

    template <class Real>
    DEMI_FLATTEN DEMI_HD Real operator()(Real value, matrix_position) const {
        detail::raise_shared(amax_, detail::finite_magnitude_bits(value));
        return value;
    }

    /// The largest magnitude of one thread.
    struct worker {
        float* amax;
        std::uint32_t largest = 0;

        template <class Real>
        DEMI_FLATTEN DEMI_HD Real operator()(Real value, matrix_position) {
            largest = max(largest, detail::finite_magnitude_bits(value));
            return value;
        }

        DEMI_HD void end() const { detail::raise_together(amax, largest); }
    };

    DEMI_HD worker begin() const { return {amax_}; }

private:
    float* amax_;
};

/// Sets a flag to 1 when a value passes that is NaN or infinite, or that becomes so when `convert`
/// rounds it to `Stored`, such as a finite 70000 in float16; the value passes unchanged.
///
/// A flag that is 1 stays 1; it has to be 0 or 1 before. Throws `invalid_argument` for a null
/// pointer. Any number of threads and products may set one flag; deterministic.
template <floating_format Stored = float>
class flag_non_finite {
public:
    explicit flag_non_finite(std::uint32_t* flag) : flag_(flag) {
        detail::require_watch_target("flag_non_finite", "flag", "a std::uint32_t", flag);
    }

    template <class Real>
    DEMI_FLATTEN DEMI_HD Real operator()(Real value, matrix_position) const {
        if (detail::becomes_non_finite<Stored>(value)) detail::raise_shared(flag_, 1);
        return value;
    }

    /// What one thread has found.
    struct worker {
        std::uint32_t* flag;
        bool found = false;

        template <class Real>
        DEMI_FLATTEN DEMI_HD Real operator()(Real value, matrix_position) {
            found = detail::becomes_non_finite<Stored>(value) || found;
            return value;
        }

        DEMI_HD void end() const { detail::raise_together(flag, found ? 1 : 0); }
    };

    DEMI_HD worker begin() const { return {flag_}; }

private:
    std::uint32_t* flag_;
};

}  // namespace demi::inline DEMI_ABI
