// SPDX-License-Identifier: MIT
/// Adam with decoupled weight decay.
#pragma once

#include <demi/training/sgd.hpp>

#include <cstdint>
#include <limits>

namespace demi::inline DEMI_ABI {

/// AdamW. Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019.
struct adamw {
    float learning_rate = 1e-3f;
    float beta1 = 0.9f;
    float beta2 = 0.999f;
    float epsilon = 1e-8f;
    float weight_decay = 1e-2f;

    static constexpr std::size_t slots = 2;

    void validate() const {
        detail::require_setting("adamw: learning_rate", learning_rate, 0, 1e30f);
        detail::require_setting("adamw: beta1", beta1, 0, 1);
        detail::require_setting("adamw: beta2", beta2, 0, 1);
        detail::require_setting("adamw: epsilon", epsilon, std::numeric_limits<float>::min(),
                                1e30f);
        detail::require_setting("adamw: weight_decay", weight_decay, 0, 1e30f);
    }

    /// The update with the bias corrections of one step folded into two factors.
    struct update {
        float beta1;
        float beta2;
        float epsilon;
        float step_size;        ///< learning_rate / (1 - beta1^step)
        float root_correction;  ///< 1 / sqrt(1 - beta2^step)
        float weight_factor;    ///< 1 - learning_rate * weight_decay
        float gradient_limit = 0x1p63f;

        template <class Real>
        DEMI_HD void operator()(Real gradient, Real& weight, Real& mean, Real& square) const {
            const auto b1 = static_cast<Real>(beta1);
            const auto b2 = static_cast<Real>(beta2);
            // A square beyond the largest float would stop this parameter for good; with a bound on
            // the gradient, the step stays one of about the learning rate.
            const auto limit = static_cast<Real>(gradient_limit);
            const Real bounded = max(min(gradient, limit), -limit);
            mean = b1 * mean + (1 - b1) * bounded;
            square = b2 * square + (1 - b2) * bounded * bounded;
            const Real spread =
                sqrt(square) * static_cast<Real>(root_correction) + static_cast<Real>(epsilon);
            weight = static_cast<Real>(weight_factor) * weight -
                     static_cast<Real>(step_size) * mean / spread;
        }
    };

    DEMI_HD update at_step(std::uint64_t step) const {
        const auto rate = static_cast<double>(learning_rate);
        return {beta1,
                beta2,
                epsilon,
                static_cast<float>(rate / (1 - power(beta1, step))),
                static_cast<float>(1 / demi::sqrt(1 - power(beta2, step))),
                static_cast<float>(1 - rate * static_cast<double>(weight_decay))};
    }

private:
    /// By repeated squaring: the same bits on every machine, which a library `pow` is not.
    DEMI_HD static double power(float base, std::uint64_t exponent) {
        double result = 1;
        for (double square = static_cast<double>(base); exponent != 0; exponent /= 2) {
            if (exponent % 2 != 0) result *= square;
            square *= square;
        }
        return result;
    }
};

static_assert(update_rule<adamw>);

}  // namespace demi::inline DEMI_ABI
