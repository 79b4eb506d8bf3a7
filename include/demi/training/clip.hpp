// SPDX-License-Identifier: MIT
/// Gradient clipping: what a step does to gradients after unscaling and before the update rule.
#pragma once

#include <demi/core/error.hpp>
#include <demi/core/real.hpp>
#include <demi/precision/format_traits.hpp>

#include <concepts>
#include <limits>

namespace demi::inline DEMI_ABI {

namespace detail {
inline constexpr float no_gradient_limit = std::numeric_limits<float>::max();
}

/// Leaves gradients as they are.
struct no_clip {
    void validate() const {}
    DEMI_HD float factor(double) const { return 1.0f; }
    DEMI_HD float limit() const { return detail::no_gradient_limit; }
};

namespace detail {

inline void require_positive(const char* who, float value) {
    if (!(is_finite(value) && value > 0)) {
        raise(invalid_argument(message(who, " of ", value, ", expected a finite value above 0")));
    }
}

}  // namespace detail

/// Multiplies all gradients with one factor so that their joint norm is at most `max_norm`.
struct clip_by_global_norm {
    float max_norm;

    void validate() const { detail::require_positive("clip_by_global_norm: max_norm", max_norm); }

    /// The factor for gradients of this norm; 1 when they are within bounds.
    DEMI_HD float factor(double norm) const {
        const auto bound = static_cast<double>(max_norm);
        return norm > bound ? static_cast<float>(bound / norm) : 1.0f;
    }
    DEMI_HD float limit() const { return detail::no_gradient_limit; }
};

/// Bounds each gradient to [-max_value, max_value].
struct clip_by_value {
    float max_value;

    void validate() const { detail::require_positive("clip_by_value: max_value", max_value); }
    DEMI_HD float factor(double) const { return 1.0f; }
    DEMI_HD float limit() const { return max_value; }
};

/// How a step clips: a factor that depends on the norm of all gradients, and a bound for each.
template <class C>
concept gradient_clip = requires(const C& clip, double norm) {
    clip.validate();
    { clip.factor(norm) } -> std::same_as<float>;
    { clip.limit() } -> std::same_as<float>;
};

static_assert(gradient_clip<no_clip> && gradient_clip<clip_by_global_norm> &&
              gradient_clip<clip_by_value>);

}  // namespace demi::inline DEMI_ABI
