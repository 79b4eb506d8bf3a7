// SPDX-License-Identifier: MIT
/// The two small functions between the passes of a step: the decision, and the fused update.
#pragma once

#include <demi/core/real.hpp>
#include <demi/scaling/loss_scaler.hpp>
#include <demi/training/clip.hpp>
#include <demi/training/update_rule.hpp>

#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// What the passes of a step tell each other, in the backend's memory.
struct step_record {
    gradient_statistics statistics{};
    step_report report{};
    std::uint64_t steps = 0;  ///< taken so far, this one included once it is decided
    float unscale = 1;
    float clip_factor = 1;
    float clip_limit = 0;
    bool apply = false;
};

/// Runs once between the passes, where the record lives: skip or apply, and with which factors.
template <loss_scale_rule ScaleRule, gradient_clip Clip>
struct decide_step {
    loss_scaler_view<ScaleRule> scaler;
    Clip clip;
    step_record* record;
    bool already_unscaled;
    double items;

    DEMI_HD void operator()() const {
        // Gradients that `unscale` refused are as they were, and what it noted about them stands.
        const bool divided = already_unscaled && scaler.unscale_is_safe();
        const double unscale =
            (divided ? 1.0 : static_cast<double>(scaler.inverse_scale())) / items;
        if (divided) {
            scaler.note_instead(record->statistics);
        } else if (!already_unscaled) {
            scaler.note(record->statistics);
        }
        step_report report = scaler.close(unscale);
        record->apply = report.applied();
        if (record->apply) {
            ++record->steps;
            record->unscale = static_cast<float>(unscale);
            record->clip_factor = clip.factor(report.gradient_norm);
            record->clip_limit = clip.limit();
            report.clip_factor = record->clip_factor;
        }
        record->report = report;
    }
};

template <loss_scale_rule ScaleRule, gradient_clip Clip>
decide_step<ScaleRule, Clip> make_decide_step(const loss_scaler_view<ScaleRule>& scaler,
                                              const Clip& clip, step_record* record,
                                              bool already_unscaled, std::uint64_t items) {
    return {scaler, clip, record, already_unscaled, static_cast<double>(items)};
}

/// The update rule fused with unscaling, clipping and the cast to the compute copy. A function that
/// bounds gradients by a member `gradient_limit` is given the lesser of its limit and the clip's.
template <class Function>
struct fused_update {
    Function update;
    float unscale;
    float clip_factor;
    float clip_limit;
    bool apply;

    DEMI_HD bool skip() const { return !apply; }

    template <class Real, class... Slots>
        requires(updates_with<Function, Real, Slots...>)
    DEMI_FLATTEN DEMI_HD void operator()(Real gradient, Real& weight, Slots&... slots) const {
        // Two factors: their product may underflow where the gradient does not.
        Real unscaled = gradient * static_cast<Real>(unscale);
        if (clip_factor != 1) unscaled = unscaled * static_cast<Real>(clip_factor);
        if constexpr (requires { update.gradient_limit; }) {
            Function bounded = update;
            bounded.gradient_limit = demi::min(update.gradient_limit, clip_limit);
            bounded(unscaled, weight, slots...);
        } else {
            const auto limit = static_cast<Real>(clip_limit);
            update(max(min(unscaled, limit), -limit), weight, slots...);
        }
    }
};

template <class Function>
struct fused_update_with_copy : fused_update<Function> {
    template <class Real, class... Slots>
        requires(updates_with<Function, Real, Slots...>)
    DEMI_FLATTEN DEMI_HD void operator()(Real gradient, Real& copy, Real& weight,
                                         Slots&... slots) const {
        fused_update<Function>::operator()(gradient, weight, slots...);
        copy = weight;
    }
};

/// Reads its factors where the record lives, so that nobody waits for them.
template <class Rule>
struct update_pass {
    Rule rule;
    const step_record* record;

    DEMI_HD auto load() const {
        const auto function = rule_at_step(rule, record->apply ? record->steps : 1);
        return fused_update<std::remove_const_t<decltype(function)>>{
            function, record->unscale, record->clip_factor, record->clip_limit, record->apply};
    }
};

template <class Rule>
struct update_pass_with_copy : update_pass<Rule> {
    DEMI_HD auto load() const {
        const auto pass = update_pass<Rule>::load();
        return fused_update_with_copy<decltype(pass.update)>{pass};
    }
};

}  // namespace demi::inline DEMI_ABI::detail
