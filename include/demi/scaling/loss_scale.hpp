// SPDX-License-Identifier: MIT
/// The loss scale rules: dynamic, static and none.
#pragma once

#include <demi/core/config.hpp>
#include <demi/core/real.hpp>
#include <demi/scaling/loss_scale_rule.hpp>

#include <cstdint>
#include <limits>

namespace demi::inline DEMI_ABI {

/// When the hysteresis of a `dynamic_loss_scale` is filled up again.
enum class hysteresis_refill : std::uint8_t {
    on_clean_step,  ///< only bad steps in a row lower the scale
    on_growth,      ///< bad steps add up until a whole growth interval was clean
};

/// A scale that falls when gradients overflow and rises again after enough clean steps in a row.
///
/// The defaults are those of PyTorch's gradient scaler; `loss_scale_preset` has the others. Where
/// overflow begins at one fixed scale, such a rule finds it and then probes it for ever: one lost
/// step for each growth interval. That is how it works, not a fault; a `ceiling` at the known scale
/// saves those steps.
///
/// Settings may change between steps: counters are compared with >=, so a shorter interval takes
/// effect at once, and the next step brings the scale within new bounds. (PyTorch compares with ==,
/// and stops growing until the next overflow; for constant settings the two are the same.)
struct dynamic_loss_scale {
    /// The scale before the first step.
    float initial_scale = 0x1p16f;
    /// Multiplies the scale when it grows. Products are rounded once, from double to float.
    double growth_factor = 2.0;
    /// Multiplies the scale when it backs off.
    double backoff_factor = 0.5;
    /// Clean steps in a row until the scale grows, and until it grows again.
    std::int32_t growth_interval = 2000;
    /// The scale never falls below: a back-off that would is cut off here.
    float floor = smallest_loss_scale;
    /// The scale never grows above: a growth that would is dropped, so that a power of two stays
    /// one.
    float ceiling = largest_loss_scale;
    /// The bad step, counted since the last refill, from which on the scale backs off: with 1 each
    /// does.
    std::int32_t hysteresis = 1;
    /// When the count of bad steps starts again.
    hysteresis_refill refill = hysteresis_refill::on_clean_step;
    /// Whether the count of bad steps also starts again after a back-off.
    bool refill_on_backoff = false;
    /// Clean steps at the start, and after each overflow, that do not count towards growth.
    std::int32_t growth_delay = 0;

    /// How far the rule has come.
    struct state {
        float scale = 0x1p16f;
        std::int32_t clean_steps = 0;  ///< in a row; after growth it restarts at `growth_delay`
        std::int32_t bad_steps = 0;    ///< since the last refill, at most `hysteresis` - 1

        friend constexpr bool operator==(const state&, const state&) = default;
    };

    friend constexpr bool operator==(const dynamic_loss_scale&,
                                     const dynamic_loss_scale&) = default;

    DEMI_HD constexpr state initial() const noexcept { return {initial_scale, 0, 0}; }

    /// The state after a step with non-finite gradients (true) or without (false).
    DEMI_HD constexpr state next(const state& now, bool overflowed) const noexcept {
        return overflowed ? after_bad_step(now) : after_clean_step(now);
    }

    /// Throws `invalid_argument` naming the first setting that is unusable.
    constexpr void validate() const {
        constexpr auto who = "dynamic_loss_scale";
        constexpr double largest_factor = 0x1p127;
        constexpr double smallest_factor = 0x1p-126;
        constexpr std::int32_t most_steps = std::numeric_limits<std::int32_t>::max();

        detail::require_scale(who, "floor", floor);
        detail::require_scale(who, "ceiling", ceiling, floor);
        detail::require_scale(who, "initial_scale", initial_scale, floor, ceiling);
        // A factor closer to 1 than this may round to no change at all.
        detail::require_value(detail::is_within(growth_factor, 1.0 + 0x1p-23, largest_factor), who,
                              "growth_factor", growth_factor,
                              "a number above 1, by 2^-23 or more, and at most 2^127");
        detail::require_value(detail::is_within(backoff_factor, smallest_factor, 1.0 - 0x1p-24),
                              who, "backoff_factor", backoff_factor,
                              "a number below 1, by 2^-24 or more, and at least 2^-126");
        detail::require_value(growth_interval > 0, who, "growth_interval", growth_interval,
                              "1 or more");
        detail::require_value(hysteresis > 0, who, "hysteresis", hysteresis, "1 or more");
        detail::require_value(growth_delay >= 0 && growth_delay <= most_steps - growth_interval,
                              who, "growth_delay", growth_delay,
                              "0 or more, and with growth_interval at most 2147483647");
    }

    /// Throws `invalid_argument` naming the first member that this rule cannot continue from.
    /// Counters beyond the present settings are accepted: the settings may have changed.
    constexpr void validate(const state& loaded) const {
        constexpr auto who = "dynamic_loss_scale";
        detail::require_scale(who, "state.scale", loaded.scale, floor, ceiling);
        detail::require_value(loaded.clean_steps >= 0, who, "state.clean_steps", loaded.clean_steps,
                              "0 or more");
        detail::require_value(loaded.bad_steps >= 0, who, "state.bad_steps", loaded.bad_steps,
                              "0 or more");
    }

private:
    DEMI_HD constexpr state after_bad_step(const state& now) const noexcept {
        if (now.bad_steps < hysteresis - 1) {
            return {bounded(widen(now.scale)), 0, now.bad_steps + 1};
        }
        return {bounded(widen(now.scale) * backoff_factor), 0,
                refill_on_backoff ? 0 : now.bad_steps};
    }

    DEMI_HD constexpr state after_clean_step(const state& now) const noexcept {
        const bool refills = refill == hysteresis_refill::on_clean_step;
        if (now.clean_steps < growth_interval - 1 + growth_delay) {
            return {bounded(widen(now.scale)), now.clean_steps + 1, refills ? 0 : now.bad_steps};
        }
        const double grown = widen(now.scale) * growth_factor;
        return {bounded(grown <= widen(ceiling) ? grown : widen(now.scale)), growth_delay, 0};
    }

    DEMI_HD constexpr float bounded(double scale) const noexcept {
        return static_cast<float>(min(max(scale, widen(floor)), widen(ceiling)));
    }
};

static_assert(loss_scale_rule<dynamic_loss_scale>);

/// A scale that never moves; steps with non-finite gradients are still found.
struct static_loss_scale {
    float value = 1.0f;

    struct state {
        float scale = 1.0f;

        friend constexpr bool operator==(const state&, const state&) = default;
    };

    friend constexpr bool operator==(const static_loss_scale&, const static_loss_scale&) = default;

    DEMI_HD constexpr state initial() const noexcept { return {value}; }
    DEMI_HD constexpr state next(const state&, bool) const noexcept { return initial(); }

    /// Throws `invalid_argument` unless the value is within the bounds of every loss scale.
    constexpr void validate() const { detail::require_scale("static_loss_scale", "value", value); }

    /// Throws `invalid_argument` unless the state has the scale of this rule.
    constexpr void validate(const state& loaded) const {
        detail::require_scale("static_loss_scale", "state.scale", loaded.scale, value, value);
    }
};

static_assert(loss_scale_rule<static_loss_scale>);

/// No scaling: the scale is 1 at compile time. The twin of the others where the formats need none.
struct no_loss_scale {
    struct state {
        float scale = 1.0f;

        friend constexpr bool operator==(const state&, const state&) = default;
    };

    friend constexpr bool operator==(const no_loss_scale&, const no_loss_scale&) = default;

    DEMI_HD constexpr state initial() const noexcept { return {}; }
    DEMI_HD constexpr state next(const state&, bool) const noexcept { return {}; }

    constexpr void validate() const {}

    /// Throws `invalid_argument` unless the scale is 1.
    constexpr void validate(const state& loaded) const {
        detail::require_scale("no_loss_scale", "state.scale", loaded.scale, 1.0f, 1.0f);
    }
};

static_assert(loss_scale_rule<no_loss_scale>);

}  // namespace demi::inline DEMI_ABI
