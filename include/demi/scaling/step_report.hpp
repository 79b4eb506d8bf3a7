// SPDX-License-Identifier: MIT
/// What became of one optimizer step, and why.
#pragma once

#include <demi/kernels/gradient_statistics.hpp>

#include <cstdint>
#include <ostream>
#include <string>

namespace demi::inline DEMI_ABI {

enum class skip_reason : std::uint8_t {
    none,                 ///< the step was applied
    non_finite_gradient,  ///< a gradient was NaN or infinite: the loss scale backs off
    gradient_overflow,    ///< finite as stored, too large once unscaled: the loss scale backs off
    non_finite_loss,      ///< the loss itself was: no loss scale helps, so it stays
};

/// The outcome of one step: a plain value that is complete for applied and skipped steps alike.
struct step_report {
    skip_reason reason = skip_reason::none;

    /// For `non_finite_gradient`: the first bad value in list order, its kind, and how many there
    /// are.
    element_position first_non_finite{};
    non_finite first_kind = non_finite::none;
    std::uint64_t nan_count = 0;
    std::uint64_t infinity_count = 0;

    /// Norm of all gradients, unscaled, before clipping; NaN when it has no value.
    double gradient_norm = 0;
    /// What the unscaled gradients were multiplied with to clip their norm, 1 when they were not.
    float clip_factor = 1;
    /// The scale of the gradients of this step, and the one for the next step.
    float loss_scale = 1;
    float next_loss_scale = 1;

    std::uint64_t applied_steps = 0;
    std::uint64_t skipped_steps = 0;
    std::uint64_t consecutive_skips = 0;

    DEMI_HD constexpr bool applied() const { return reason == skip_reason::none; }
};

/// One line for a log, such as "skipped: gradient tensor 3, element 17 is +infinity at loss scale
/// 65536; next loss scale 32768".
inline std::string describe(const step_report& report) {
    using detail::message;
    const std::string next = report.next_loss_scale == report.loss_scale
                                 ? std::string()
                                 : message("; next loss scale ", report.next_loss_scale);
    switch (report.reason) {
        case skip_reason::non_finite_gradient:
            return message("skipped: gradient tensor ", report.first_non_finite.tensor,
                           ", element ", report.first_non_finite.index, " is ",
                           name(report.first_kind), " at loss scale ", report.loss_scale, next);
        case skip_reason::gradient_overflow:
            return message("skipped: the gradients overflow once divided by loss scale ",
                           report.loss_scale, next);
        case skip_reason::non_finite_loss:
            return message("skipped: the loss is not finite at loss scale ", report.loss_scale);
        default:
            return message("applied: gradient norm ", report.gradient_norm, " at loss scale ",
                           report.loss_scale, next);
    }
}

inline std::ostream& operator<<(std::ostream& stream, const step_report& report) {
    return stream << describe(report);
}

}  // namespace demi::inline DEMI_ABI
