// SPDX-License-Identifier: MIT
/// The loss scale rules of well-known systems, step for step.
///
/// Each preset gives the scales that the system gives for the same overflows, as golden traces
/// show (tests/conformance/generate_loss_scale_traces.py). What lies outside the scale is not part
/// of a rule: a system that stops at its floor, or zeroes gradients, does so around it. Two
/// differences are meant: a system without a floor or ceiling can reach 0 or infinity where these
/// stop at `smallest_loss_scale` and `largest_loss_scale`; and a growth past the ceiling is always
/// dropped, where Apex and MXNet cut it off (the same for powers of two).
///
/// Change what differs in your configuration: `auto rule = loss_scale_preset::megatron();
/// rule.growth_interval = 500;`.
#pragma once

#include <demi/core/config.hpp>
#include <demi/scaling/loss_scale.hpp>

namespace demi::inline DEMI_ABI {

namespace loss_scale_preset {

/// PyTorch's `GradScaler`: 2^16, doubled after 2000 clean steps in a row, halved by each bad one.
constexpr dynamic_loss_scale pytorch() { return {}; }

/// Apex `amp`: as PyTorch, with a ceiling of 2^24.
constexpr dynamic_loss_scale apex_amp() { return {.ceiling = 0x1p24f}; }

/// Apex `fp16_utils`: from 2^32, doubled whenever the steps since the last bad one are a multiple
/// of 1000, floor 1.
constexpr dynamic_loss_scale apex_fp16_utils() {
    return {.initial_scale = 0x1p32f, .growth_interval = 1000, .floor = 1.0f};
}

/// Apex's scale update kernel with hysteresis, which leaves the numbers to the caller: as PyTorch,
/// but only the second of bad steps in a row backs off, and each that follows.
constexpr dynamic_loss_scale apex_hysteresis() { return {.hysteresis = 2}; }

/// Megatron-LM: from 2^32, interval 1000, floor 1, hysteresis 2 that is used up by bad steps even
/// with clean ones between them, until the scale grows.
constexpr dynamic_loss_scale megatron() {
    return {.initial_scale = 0x1p32f,
            .growth_interval = 1000,
            .floor = 1.0f,
            .hysteresis = 2,
            .refill = hysteresis_refill::on_growth};
}

/// DeepSpeed's dynamic scaler: hysteresis as in Megatron-LM, from 2^16, and the clean step right
/// after a bad one does not count: with interval 1000 the first growth comes at clean step 1001.
/// The floor is 1; DeepSpeed's unfused profile has 0.25.
constexpr dynamic_loss_scale deepspeed() {
    return {.growth_interval = 1000,
            .floor = 1.0f,
            .hysteresis = 2,
            .refill = hysteresis_refill::on_growth,
            .growth_delay = 1};
}

/// DeepSpeed with `consecutive_hysteresis`: a clean step refills.
constexpr dynamic_loss_scale deepspeed_consecutive() {
    return {.growth_interval = 1000, .floor = 1.0f, .hysteresis = 2, .growth_delay = 1};
}

/// DeepSpeed's fused float16 optimizer, which updates the scale itself: from 2^32, no hysteresis.
constexpr dynamic_loss_scale deepspeed_fused() {
    return {.initial_scale = 0x1p32f, .growth_interval = 1000, .floor = 1.0f, .growth_delay = 1};
}

/// Keras 3 `LossScaleOptimizer`: as PyTorch, from 2^15.
constexpr dynamic_loss_scale keras() { return {.initial_scale = 0x1p15f}; }

/// jmp's `DynamicLossScale`, from 2^15 as in its documentation: as PyTorch, with a floor of 1.
constexpr dynamic_loss_scale jmp() { return {.initial_scale = 0x1p15f, .floor = 1.0f}; }

/// Paddle's `GradScaler`: from 2^15, interval 1000, floor 1; set `hysteresis` to its
/// `decr_every_n_nan_or_inf` (1 in the code, 2 in its text). Each such number of bad steps in a row
/// backs off once.
constexpr dynamic_loss_scale paddle() {
    return {.initial_scale = 0x1p15f,
            .growth_interval = 1000,
            .floor = 1.0f,
            .refill_on_backoff = true};
}

/// MXNet's `LossScaler`: as PyTorch, with a ceiling of 2^24.
constexpr dynamic_loss_scale mxnet() { return {.ceiling = 0x1p24f}; }

}  // namespace loss_scale_preset

}  // namespace demi::inline DEMI_ABI
