// SPDX-License-Identifier: MIT
/// Stochastic gradient descent with momentum and weight decay.
#pragma once

#include <demi/core/error.hpp>
#include <demi/core/real.hpp>
#include <demi/precision/format_traits.hpp>
#include <demi/training/update_rule.hpp>

namespace demi::inline DEMI_ABI {

namespace detail {

/// Throws unless a setting is finite and in [low, high).
inline void require_setting(const char* who, float value, float low, float high) {
    if (!(is_finite(value) && value >= low && value < high)) {
        raise(invalid_argument(
            message(who, " of ", value, ", expected at least ", low, " and below ", high)));
    }
}

}  // namespace detail

/// `velocity = momentum * velocity + gradient + weight_decay * weight; weight -= learning_rate *
/// velocity`, with the gradient itself in place of the velocity in a Nesterov step.
struct sgd {
    float learning_rate = 1e-2f;
    float momentum = 0.9f;
    float weight_decay = 0.0f;
    bool nesterov = false;

    static constexpr std::size_t slots = 1;

    void validate() const {
        detail::require_setting("sgd: learning_rate", learning_rate, 0, 1e30f);
        detail::require_setting("sgd: momentum", momentum, 0, 1);
        detail::require_setting("sgd: weight_decay", weight_decay, 0, 1e30f);
    }

    template <class Real>
    DEMI_HD void operator()(Real gradient, Real& weight, Real& velocity) const {
        const auto rate = static_cast<Real>(learning_rate);
        const auto kept = static_cast<Real>(momentum);
        const Real decayed = gradient + static_cast<Real>(weight_decay) * weight;
        velocity = kept * velocity + decayed;
        weight = weight - rate * (nesterov ? decayed + kept * velocity : velocity);
    }
};

static_assert(update_rule<sgd>);

}  // namespace demi::inline DEMI_ABI
