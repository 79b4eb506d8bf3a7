// SPDX-License-Identifier: MIT
/// What a loss scaler asks its backend to run: types with names in a namespace, for neither lambdas
/// nor private types can travel to a device.
#pragma once

#include <demi/core/real.hpp>
#include <demi/kernels/gradient_statistics.hpp>
#include <demi/scaling/loss_scaler_view.hpp>

#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

template <loss_scale_rule Rule>
struct note_loss {
    loss_scaler_view<Rule> scaler;
    bool is_finite;

    DEMI_HD void operator()() const { scaler.note_loss(is_finite); }
};

template <loss_scale_rule Rule>
struct note_gradients {
    loss_scaler_view<Rule> scaler;
    gradient_statistics* found;
    std::uint64_t first_tensor;  ///< of this list among all lists of the step

    DEMI_HD void operator()() const {
        found->first_non_finite.tensor += first_tensor;
        scaler.note(*found);
    }
};

template <loss_scale_rule Rule>
struct close_step {
    loss_scaler_view<Rule> scaler;
    step_report* report;

    DEMI_HD void operator()() const {
        *report = scaler.close(static_cast<double>(scaler.inverse_scale()));
    }
};

template <loss_scale_rule Rule>
struct forget_step {
    loss_scaler_view<Rule> scaler;

    DEMI_HD void operator()() const { scaler.forget(); }
};

struct multiply_unless_unsafe {
    float factor;
    bool unsafe;

    DEMI_HD bool skip() const { return unsafe; }
    template <class Real>
    DEMI_HD void operator()(Real& gradient) const {
        gradient = gradient * static_cast<Real>(factor);
    }
};

/// Divides gradients by the scale, unless what was noted about them forbids it.
template <loss_scale_rule Rule>
struct unscale_pass {
    loss_scaler_view<Rule> scaler;

    DEMI_HD multiply_unless_unsafe load() const {
        return {scaler.inverse_scale(), !scaler.unscale_is_safe()};
    }
};

}  // namespace demi::inline DEMI_ABI::detail
