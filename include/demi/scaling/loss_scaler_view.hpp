// SPDX-License-Identifier: MIT
/// A loss scaler as code that runs with the backend sees it, and the state that outlives a step.
#pragma once

#include <demi/core/real.hpp>
#include <demi/kernels/gradient_statistics.hpp>
#include <demi/precision/format_traits.hpp>
#include <demi/scaling/loss_scale_rule.hpp>
#include <demi/scaling/step_report.hpp>

#include <cstdint>

namespace demi::inline DEMI_ABI {

/// Everything that a scaler must remember from one step to the next: a plain value to checkpoint.
template <loss_scale_rule Rule>
struct loss_scaler_state {
    typename Rule::state rule{};
    std::uint32_t consecutive_skips = 0;
    std::uint64_t applied_steps = 0;
    std::uint64_t skipped_steps = 0;

    friend bool operator==(const loss_scaler_state&, const loss_scaler_state&) = default;
};

/// A scaler as code that runs with the backend sees it; trivially copyable.
template <loss_scale_rule Rule>
class loss_scaler_view {
public:
    /// The scaler's memory: its state, and what was found out about the gradients of this step.
    struct record {
        loss_scaler_state<Rule> state{};
        gradient_statistics found{};
        bool loss_is_finite = true;
    };

    DEMI_HD loss_scaler_view(const Rule& rule, record* memory) : rule_(rule), memory_(memory) {}

    DEMI_HD float scale() const { return memory_->state.rule.scale; }
    /// What decides about gradients and what multiplies them must be this one value: another
    /// rounding of it could let a gradient overflow that was found safe.
    DEMI_HD float inverse_scale() const {
        return static_cast<float>(1.0 / static_cast<double>(scale()));
    }
    DEMI_HD const gradient_statistics& found() const { return memory_->found; }

    /// Joins statistics of further gradients of this step.
    DEMI_HD void note(const gradient_statistics& more) const {
        memory_->found = merge(memory_->found, more);
    }
    /// Takes statistics in place of those noted before, of gradients divided since then.
    DEMI_HD void note_instead(const gradient_statistics& now) const { memory_->found = now; }
    DEMI_HD void note_loss(bool is_finite) const {
        memory_->loss_is_finite = memory_->loss_is_finite && is_finite;
    }

    /// Whether the noted gradients may be used once multiplied with `unscale`.
    DEMI_HD skip_reason verdict(double unscale) const {
        if (!memory_->loss_is_finite) return skip_reason::non_finite_loss;
        if (!found().finite()) return skip_reason::non_finite_gradient;
        const auto largest = static_cast<float>(found().largest_magnitude * unscale);
        return is_finite(largest) ? skip_reason::none : skip_reason::gradient_overflow;
    }

    /// Whether the noted gradients may be used once divided by the scale.
    DEMI_HD bool unscale_is_safe() const {
        return verdict(static_cast<double>(inverse_scale())) == skip_reason::none;
    }

    /// Ends the step: moves the scale, counts, forgets the findings, and reports.
    DEMI_HD step_report close(double unscale) const {
        auto& state = memory_->state;
        step_report report;
        report.reason = verdict(unscale);
        report.first_non_finite = found().first_non_finite;
        report.first_kind = found().first_kind;
        report.nan_count = found().nan_count;
        report.infinity_count = found().infinity_count;
        report.gradient_norm =
            found().finite() ? sqrt(found().sum_of_squares) * unscale : __builtin_nan("");
        report.loss_scale = state.rule.scale;
        if (report.reason != skip_reason::non_finite_loss) {
            state.rule = rule_.next(state.rule, !report.applied());
        }
        report.next_loss_scale = state.rule.scale;
        ++(report.applied() ? state.applied_steps : state.skipped_steps);
        state.consecutive_skips = report.applied() ? 0 : state.consecutive_skips + 1;
        report.applied_steps = state.applied_steps;
        report.skipped_steps = state.skipped_steps;
        report.consecutive_skips = state.consecutive_skips;
        forget();
        return report;
    }

    DEMI_HD void forget() const {
        memory_->found = {};
        memory_->loss_is_finite = true;
    }

private:
    Rule rule_;
    record* memory_;
};

}  // namespace demi::inline DEMI_ABI
