// SPDX-License-Identifier: MIT
#include <demi/scaling/loss_scale.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <vector>

using demi::dynamic_loss_scale;
using demi::hysteresis_refill;
using demi::no_loss_scale;
using demi::static_loss_scale;

namespace {

constexpr bool bad = true;
constexpr bool clean = false;

template <class Rule>
constexpr typename Rule::state run_constexpr(const Rule& rule, typename Rule::state now,
                                             bool overflowed, int steps) {
    for (int step = 0; step < steps; ++step) now = rule.next(now, overflowed);
    return now;
}

/// The same, not constexpr: compilers would unroll the long runs below while they compile.
template <class Rule>
typename Rule::state run(const Rule& rule, typename Rule::state now, bool overflowed, int steps) {
    for (int step = 0; step < steps; ++step) now = rule.next(now, overflowed);
    return now;
}

template <class Rule>
std::vector<float> scales(const Rule& rule, const std::vector<bool>& overflows) {
    std::vector<float> trace;
    auto now = rule.initial();
    for (const bool overflowed : overflows) {
        now = rule.next(now, overflowed);
        trace.push_back(now.scale);
    }
    return trace;
}

/// Why a rule refuses its settings, or a state; empty when it does not.
template <class Rule, class... State>
std::string refusal(const Rule& rule, const State&... state) {
    return message_of<demi::invalid_argument>([&] { rule.validate(state...); });
}

bool is_normal(float value) {
    const auto exponent = (__builtin_bit_cast(std::uint32_t, value) >> 23) & 0xffu;
    return exponent != 0 && exponent != 0xff;
}

float nan_value() { return __builtin_bit_cast(float, std::uint32_t{0x7fc00000u}); }
float infinity_value() { return __builtin_bit_cast(float, std::uint32_t{0x7f800000u}); }

// Rules work in constant expressions.
constexpr dynamic_loss_scale quick{.initial_scale = 1024, .growth_interval = 3};
static_assert((quick.validate(), quick.validate(quick.initial()), true));
static_assert(run_constexpr(quick, quick.initial(), clean, 3) ==
              dynamic_loss_scale::state{2048, 0, 0});
static_assert(run_constexpr(quick, quick.initial(), bad, 2) ==
              dynamic_loss_scale::state{256, 0, 0});
static_assert(run_constexpr(static_loss_scale{128}, {128}, bad, 5).scale == 128);
static_assert(run_constexpr(no_loss_scale{}, {}, bad, 5).scale == 1);
static_assert(sizeof(dynamic_loss_scale::state) == 12);

dynamic_loss_scale random_settings(std::mt19937_64& random) {
    const auto below = [&](int limit) { return static_cast<int>(random() % unsigned(limit)); };
    std::uniform_real_distribution<double> exponent(-125.0, 125.0), zero_to_one(0.0, 1.0);
    const auto power = [&](double from, double to) {
        return static_cast<float>(std::exp2(from + (to - from) * zero_to_one(random)));
    };

    dynamic_loss_scale rule;
    if (below(2) == 0) {
        rule.floor = static_cast<float>(std::exp2(exponent(random)));
        rule.ceiling = below(4) == 0 ? rule.floor : power(std::log2(double(rule.floor)), 125.0);
        if (rule.ceiling < rule.floor) rule.ceiling = rule.floor;
    }
    rule.initial_scale = power(std::log2(double(rule.floor)), std::log2(double(rule.ceiling)));
    if (rule.initial_scale < rule.floor) rule.initial_scale = rule.floor;
    if (rule.initial_scale > rule.ceiling) rule.initial_scale = rule.ceiling;
    const double extremes_up[] = {1.0 + 0x1p-23, 0x1p127, 2.0, 1.001};
    const double extremes_down[] = {1.0 - 0x1p-24, 0x1p-126, 0.5, 0.999};
    rule.growth_factor = below(2) == 0 ? extremes_up[below(4)] : 1.01 + 3.0 * zero_to_one(random);
    rule.backoff_factor =
        below(2) == 0 ? extremes_down[below(4)] : 0.01 + 0.98 * zero_to_one(random);
    rule.growth_interval = 1 + below(6);
    rule.hysteresis = 1 + below(4);
    rule.refill = below(2) == 0 ? hysteresis_refill::on_growth : hysteresis_refill::on_clean_step;
    rule.refill_on_backoff = below(2) == 0;
    rule.growth_delay = below(3);
    return rule;
}

/// Steps of a run that break a promise: bounds, direction, counters, acceptance of own states.
int broken_promises(const dynamic_loss_scale& rule, std::mt19937_64& random, int steps) {
    int broken = 0;
    auto now = rule.initial();
    std::uint64_t bad_share = random() % 9;
    for (int step = 0; step < steps; ++step) {
        const bool overflowed = random() % 8 < bad_share;
        const auto next = rule.next(now, overflowed);
        const bool sound = is_normal(next.scale) && is_normal(1.0f / next.scale) &&
                           next.scale >= rule.floor && next.scale <= rule.ceiling;
        const bool directed = overflowed ? next.scale <= now.scale : next.scale >= now.scale;
        const bool counted = next.clean_steps >= 0 && next.bad_steps >= 0 &&
                             next.clean_steps < rule.growth_interval + rule.growth_delay &&
                             next.bad_steps < rule.hysteresis;
        if (!sound || !directed || !counted || refusal(rule, next) != "") ++broken;
        now = next;
    }
    return broken;
}

/// Skipped steps of a long run whose gradients overflow above a fixed scale.
int lost_steps(const dynamic_loss_scale& rule) {
    const float limit = 0x1p18f;
    int lost = 0;
    auto now = rule.initial();
    for (int step = 0; step < 200000; ++step) {
        const bool overflowed = now.scale > limit;
        lost += overflowed ? 1 : 0;
        now = rule.next(now, overflowed);
    }
    return lost;
}

}  // namespace

TEST_CASE("the defaults start at 65536, halve at each bad step and double after 2000 clean ones") {
    const dynamic_loss_scale rule;
    rule.validate();
    auto now = rule.initial();
    CHECK(now.scale == 65536.0f);
    now = run(rule, now, clean, 1999);
    CHECK(now.scale == 65536.0f);
    now = rule.next(now, clean);
    CHECK(now.scale == 131072.0f);
    now = rule.next(now, bad);
    CHECK(now.scale == 65536.0f);
}

TEST_CASE("a bad step starts the growth interval again") {
    const dynamic_loss_scale rule{.initial_scale = 4, .backoff_factor = 0.25, .growth_interval = 2};
    auto now = rule.initial();
    now = rule.next(now, clean);
    CHECK(now == dynamic_loss_scale::state{4, 1, 0});
    now = rule.next(now, clean);
    CHECK(now == dynamic_loss_scale::state{8, 0, 0});
    now = rule.next(now, clean);
    now = rule.next(now, bad);
    CHECK(now == dynamic_loss_scale::state{2, 0, 0});
}

TEST_CASE("the next state depends on nothing but its arguments") {
    const dynamic_loss_scale::state now{1024, 2, 0};
    const auto first = quick.next(now, clean);
    quick.next(now, bad);
    CHECK(quick.next(now, clean) == first);
    CHECK(now == dynamic_loss_scale::state{1024, 2, 0});
}

TEST_CASE("products are formed in double and rounded once") {
    const dynamic_loss_scale rule{
        .initial_scale = 1000, .growth_factor = 1.001, .backoff_factor = 0.7, .growth_interval = 1};
    int wrong = 0;
    auto now = rule.initial();
    for (int step = 0; step < 2000; ++step) {
        const bool overflowed = step % 300 == 299;
        const double factor = overflowed ? 0.7 : 1.001;
        const float expected = static_cast<float>(static_cast<double>(now.scale) * factor);
        now = rule.next(now, overflowed);
        if (now.scale != expected) ++wrong;
    }
    CHECK(wrong == 0);
}

TEST_CASE("a growth past the ceiling is dropped and the interval starts again") {
    const dynamic_loss_scale rule{.initial_scale = 32768, .growth_interval = 2, .ceiling = 50000};
    auto now = run(rule, rule.initial(), clean, 2);
    CHECK(now == dynamic_loss_scale::state{32768, 0, 0});
    now = run(rule, now, clean, 100);
    CHECK(now.scale == 32768.0f);
    CHECK(rule.next(now, bad).scale == 16384.0f);
}

TEST_CASE("a growth that lands on the ceiling is taken") {
    const dynamic_loss_scale rule{.initial_scale = 32768, .growth_interval = 1, .ceiling = 65536};
    CHECK(run(rule, rule.initial(), clean, 1).scale == 65536.0f);
    CHECK(run(rule, rule.initial(), clean, 50).scale == 65536.0f);
}

TEST_CASE("a growth delay postpones the first growth after each overflow only") {
    const dynamic_loss_scale rule{.initial_scale = 8, .growth_interval = 3, .growth_delay = 1};
    CHECK(scales(rule, {clean, clean, clean, clean, clean, clean, clean}) ==
          std::vector<float>{8, 8, 8, 16, 16, 16, 32});
    CHECK(scales(rule, {bad, clean, clean, clean, clean, clean, clean, clean}) ==
          std::vector<float>{4, 4, 4, 4, 8, 8, 8, 16});
}

TEST_CASE("hysteresis tolerates bad steps until the count is reached, then each backs off") {
    const dynamic_loss_scale rule{.initial_scale = 64, .growth_interval = 10, .hysteresis = 3};
    CHECK(scales(rule, {bad, bad, bad, bad, bad}) == std::vector<float>{64, 64, 32, 16, 8});
}

TEST_CASE("with refill on back-off each full count backs off once") {
    const dynamic_loss_scale rule{
        .initial_scale = 64, .growth_interval = 10, .hysteresis = 2, .refill_on_backoff = true};
    CHECK(scales(rule, {bad, bad, bad, bad, bad}) == std::vector<float>{64, 32, 32, 16, 16});
}

TEST_CASE("a tolerated bad step still starts the growth interval again") {
    const dynamic_loss_scale rule{.initial_scale = 64, .growth_interval = 2, .hysteresis = 2};
    CHECK(scales(rule, {clean, bad, clean, clean}) == std::vector<float>{64, 64, 64, 128});
}

TEST_CASE("S1: a scale that overflows for ever stops at its floor and never becomes 0") {
    const dynamic_loss_scale rule{.initial_scale = 4};
    const auto end = run(rule, rule.initial(), bad, 100000);
    CHECK(end.scale == demi::smallest_loss_scale);
    CHECK(is_normal(end.scale));
    CHECK(is_normal(1.0f / end.scale));
    CHECK(rule.next(end, bad) == end);
}

TEST_CASE("S1: a scale that never overflows stops below its ceiling with a normal inverse") {
    for (const double factor : {2.0, 1.5, 1000.0, 0x1p127}) {
        CAPTURE(factor);
        const dynamic_loss_scale rule{.growth_factor = factor, .growth_interval = 1};
        const auto end = run(rule, rule.initial(), clean, 100000);
        CHECK(is_normal(end.scale));
        CHECK(is_normal(1.0f / end.scale));
        CHECK(static_cast<double>(end.scale) * factor >
              static_cast<double>(demi::largest_loss_scale));
    }
}

TEST_CASE("no settings and no sequence of overflows take scale or inverse out of normal floats") {
    std::mt19937_64 random(20260822);
    int broken = 0;
    int refused = 0;
    for (int trial = 0; trial < 4000; ++trial) {
        const dynamic_loss_scale rule = random_settings(random);
        if (refusal(rule) != "") ++refused;
        broken += broken_promises(rule, random, 300);
    }
    CHECK(refused == 0);
    CHECK(broken == 0);
}

TEST_CASE("100000 bad or clean steps leave random rules at rest within their bounds") {
    std::mt19937_64 random(7);
    int restless = 0;
    for (int trial = 0; trial < 40; ++trial) {
        dynamic_loss_scale rule = random_settings(random);
        // The smallest factors need more steps than these to cross the range of float.
        if (rule.growth_factor < 1.01) rule.growth_factor = 1.1;
        if (rule.backoff_factor > 0.99) rule.backoff_factor = 0.9;
        const auto lowest = run(rule, rule.initial(), bad, 100000);
        const auto highest = run(rule, rule.initial(), clean, 100000);
        const double next = static_cast<double>(highest.scale) * rule.growth_factor;
        if (lowest.scale != rule.floor) ++restless;
        if (highest.scale > rule.ceiling || next <= static_cast<double>(rule.ceiling)) ++restless;
    }
    CHECK(restless == 0);
}

TEST_CASE("factors as close to 1 as allowed still move every scale") {
    std::mt19937_64 random(11);
    const dynamic_loss_scale rule{
        .growth_factor = 1.0 + 0x1p-23, .backoff_factor = 1.0 - 0x1p-24, .growth_interval = 1};
    rule.validate();
    int stuck = 0;
    for (int trial = 0; trial < 100000; ++trial) {
        const auto mantissa = static_cast<std::uint32_t>(random()) & 0x7fffffu;
        const float scale = __builtin_bit_cast(float, 0x3f800000u | mantissa);
        if (!(rule.next({scale, 0, 0}, clean).scale > scale)) ++stuck;
        if (!(rule.next({scale, 0, 0}, bad).scale < scale)) ++stuck;
    }
    CHECK(stuck == 0);
}

TEST_CASE("S2: a scale of 0 is refused in the settings and in a loaded state") {
    const auto names_zero = [](const std::string& text, const std::string& what) {
        return mentions(text, {what + " is 0, expected a number from "});
    };
    const dynamic_loss_scale rule;
    CHECK(names_zero(refusal(dynamic_loss_scale{.initial_scale = 0}), "initial_scale"));
    CHECK(names_zero(refusal(dynamic_loss_scale{.floor = 0}), "floor"));
    CHECK(names_zero(refusal(static_loss_scale{0}), "value"));
    CHECK(names_zero(refusal(rule, dynamic_loss_scale::state{0, 0, 0}), "state.scale"));
    CHECK(names_zero(refusal(static_loss_scale{2}, static_loss_scale::state{0}), "state.scale"));
    CHECK(names_zero(refusal(no_loss_scale{}, no_loss_scale::state{0}), "state.scale"));
}

TEST_CASE("unusable settings are refused and named with their value") {
    const auto refused = [](const dynamic_loss_scale& rule, const std::string& what) {
        const std::string text = refusal(rule);
        CAPTURE(text, what);
        CHECK(mentions(text, {"dynamic_loss_scale: " + what}));
        CHECK(mentions(text, {", expected "}));
    };
    const double wide_nan = __builtin_bit_cast(double, std::uint64_t{0x7ff8000000000000u});
    const double wide_infinity = __builtin_bit_cast(double, std::uint64_t{0x7ff0000000000000u});

    refused({.initial_scale = -2}, "initial_scale is -2");
    refused({.initial_scale = nan_value()}, "initial_scale is nan");
    refused({.initial_scale = infinity_value()}, "initial_scale is inf");
    refused({.initial_scale = 1, .floor = 2}, "initial_scale is 1");
    refused({.initial_scale = 16, .ceiling = 8}, "initial_scale is 16");
    refused({.floor = nan_value()}, "floor is nan");
    refused({.floor = -1}, "floor is -1");
    refused({.floor = 0x1p-126f}, "floor is 1.1754944e-38");
    refused({.ceiling = infinity_value()}, "ceiling is inf");
    refused({.ceiling = 0x1p126f}, "ceiling is 8.507059e+37");
    refused({.initial_scale = 4, .floor = 4, .ceiling = 2}, "ceiling is 2");
    refused({.growth_factor = 1}, "growth_factor is 1");
    refused({.growth_factor = 1.0 + 0x1p-24}, "growth_factor is 1.0000000596046448");
    refused({.growth_factor = 0.5}, "growth_factor is 0.5");
    refused({.growth_factor = -2}, "growth_factor is -2");
    refused({.growth_factor = wide_nan}, "growth_factor is nan");
    refused({.growth_factor = wide_infinity}, "growth_factor is inf");
    refused({.growth_factor = 1e300}, "growth_factor is 1e+300");
    refused({.backoff_factor = 1}, "backoff_factor is 1");
    refused({.backoff_factor = 1.5}, "backoff_factor is 1.5");
    refused({.backoff_factor = 0}, "backoff_factor is 0");
    refused({.backoff_factor = -0.5}, "backoff_factor is -0.5");
    refused({.backoff_factor = wide_nan}, "backoff_factor is nan");
    refused({.growth_interval = 0}, "growth_interval is 0");
    refused({.growth_interval = -5}, "growth_interval is -5");
    refused({.hysteresis = 0}, "hysteresis is 0");
    refused({.growth_delay = -1}, "growth_delay is -1");
    refused({.growth_interval = 2147483647, .growth_delay = 1}, "growth_delay is 1");
}

TEST_CASE("settings at the edge of what is allowed are accepted and do not overflow a counter") {
    const std::int32_t most = std::numeric_limits<std::int32_t>::max();
    const dynamic_loss_scale rule{.initial_scale = 2,
                                  .growth_factor = 0x1p127,
                                  .backoff_factor = 0x1p-126,
                                  .growth_interval = most,
                                  .floor = demi::smallest_loss_scale,
                                  .ceiling = demi::largest_loss_scale,
                                  .hysteresis = most};
    CHECK(refusal(rule) == "");
    const dynamic_loss_scale::state late{2, most - 2, most - 2};
    CHECK(rule.next(late, clean) == dynamic_loss_scale::state{2, most - 1, 0});
    CHECK(rule.next(late, bad) == dynamic_loss_scale::state{2, 0, most - 1});
    const dynamic_loss_scale::state last{2, most, most};
    CHECK(rule.next(last, clean) == dynamic_loss_scale::state{2, 0, 0});
    CHECK(rule.next(last, bad) == dynamic_loss_scale::state{demi::smallest_loss_scale, 0, most});
}

TEST_CASE("a loaded state is refused with the name of the member that is wrong") {
    const dynamic_loss_scale rule{.floor = 1, .ceiling = 0x1p20f};
    using state = dynamic_loss_scale::state;
    CHECK(refusal(rule, state{1024, 17, 0}) == "");
    CHECK(refusal(rule, state{1, 0, 0}) == "");
    CHECK(mentions(refusal(rule, state{nan_value(), 0, 0}), {"state.scale is nan"}));
    CHECK(mentions(refusal(rule, state{infinity_value(), 0, 0}), {"state.scale is inf"}));
    CHECK(mentions(refusal(rule, state{-8, 0, 0}), {"state.scale is -8"}));
    CHECK(mentions(refusal(rule, state{0.5f, 0, 0}),
                   {"state.scale is 0.5, expected a number from 1 to 1048576"}));
    CHECK(mentions(refusal(rule, state{0x1p21f, 0, 0}), {"state.scale is 2097152"}));
    CHECK(
        mentions(refusal(rule, state{8, -1, 0}), {"state.clean_steps is -1, expected 0 or more"}));
    CHECK(mentions(refusal(rule, state{8, 0, -3}), {"state.bad_steps is -3, expected 0 or more"}));
}

TEST_CASE("S4: a shorter interval takes effect at once, also below the present count") {
    dynamic_loss_scale rule{.initial_scale = 256};
    auto now = run(rule, rule.initial(), clean, 500);
    REQUIRE(now.clean_steps == 500);
    rule.growth_interval = 100;
    CHECK(refusal(rule, now) == "");
    now = rule.next(now, clean);
    CHECK(now == dynamic_loss_scale::state{512, 0, 0});
    CHECK(run(rule, now, clean, 100).scale == 1024.0f);
}

TEST_CASE("S4: bounds that change between steps hold from the next step") {
    dynamic_loss_scale rule{.initial_scale = 256};
    auto now = run(rule, rule.initial(), bad, 3);
    REQUIRE(now.scale == 32.0f);
    rule.floor = 128;
    CHECK(rule.next(now, bad).scale == 128.0f);
    CHECK(rule.next(now, clean).scale == 128.0f);
    rule = {.initial_scale = 8, .ceiling = 16};
    CHECK(rule.next(now, clean).scale == 16.0f);
    CHECK(rule.next({64, 0, 0}, bad).scale == 16.0f);
}

TEST_CASE("S4: a smaller hysteresis takes effect at once, also below the present count") {
    dynamic_loss_scale rule{.initial_scale = 256, .hysteresis = 10};
    const auto now = run(rule, rule.initial(), bad, 5);
    REQUIRE(now == dynamic_loss_scale::state{256, 0, 5});
    rule.hysteresis = 2;
    CHECK(rule.next(now, bad).scale == 128.0f);
}

TEST_CASE("S7: a floor below 1 lets the scale fall below 1") {
    const dynamic_loss_scale rule{.initial_scale = 1, .floor = 0.25};
    CHECK(scales(rule, {bad, bad, bad, bad}) == std::vector<float>{0.5, 0.25, 0.25, 0.25});
}

TEST_CASE("S8: the floor is a setting") {
    for (const float floor : {0.125f, 1.0f, 128.0f}) {
        CAPTURE(floor);
        const dynamic_loss_scale rule{.initial_scale = 1024, .floor = floor};
        CHECK(run(rule, rule.initial(), bad, 30).scale == floor);
    }
}

TEST_CASE("S16: probing a fixed limit costs one step an interval, and nothing with a ceiling") {
    CHECK(lost_steps({}) == (200000 - 4000) / 2001);
    CHECK(lost_steps({.ceiling = 0x1p18f}) == 0);
}

TEST_CASE("S79: steps are counted, not read off the scale: one interval doubles from 32768") {
    const dynamic_loss_scale rule{.initial_scale = 32768};
    CHECK(run(rule, rule.initial(), clean, 1999).scale == 32768.0f);
    CHECK(run(rule, rule.initial(), clean, 2000).scale == 65536.0f);
}

TEST_CASE("S80: a back-off stops on the floor where it would step over it") {
    const dynamic_loss_scale rule{.initial_scale = 12, .floor = 8};
    CHECK(rule.next(rule.initial(), bad).scale == 8.0f);
}

TEST_CASE("S82: an overflow backs off at once, at whichever step of the interval") {
    const dynamic_loss_scale rule;
    for (const int step : {0, 1, 7, 1999}) {
        CAPTURE(step);
        const auto before = run(rule, rule.initial(), clean, step);
        CHECK(rule.next(before, bad).scale == 32768.0f);
    }
}

TEST_CASE("S83: bad steps with a clean one between add up only if growth alone refills") {
    dynamic_loss_scale rule{.initial_scale = 1024, .hysteresis = 2};
    rule.refill = hysteresis_refill::on_clean_step;
    CHECK(scales(rule, {bad, clean, bad, bad}) == std::vector<float>{1024, 1024, 1024, 512});
    rule.refill = hysteresis_refill::on_growth;
    CHECK(scales(rule, {bad, clean, bad, bad}) == std::vector<float>{1024, 1024, 512, 256});
}

TEST_CASE("a growth interval that ends at the ceiling refills as a growth does") {
    const dynamic_loss_scale rule{.initial_scale = 16,
                                  .growth_interval = 2,
                                  .ceiling = 16,
                                  .hysteresis = 2,
                                  .refill = hysteresis_refill::on_growth};
    CHECK(scales(rule, {bad, clean, clean, bad, bad}) == std::vector<float>{16, 16, 16, 16, 8});
}

TEST_CASE("a static scale never moves and refuses a state with another scale") {
    const static_loss_scale rule{128};
    rule.validate();
    CHECK(scales(rule, {bad, clean, bad, bad}) == std::vector<float>{128, 128, 128, 128});
    CHECK(refusal(rule, static_loss_scale::state{128}) == "");
    CHECK(mentions(refusal(rule, static_loss_scale::state{64}),
                   {"static_loss_scale: state.scale is 64, expected a number from 128 to 128"}));
    CHECK(mentions(refusal(static_loss_scale{nan_value()}), {"static_loss_scale: value is nan"}));
    CHECK(mentions(refusal(static_loss_scale{-1}), {"static_loss_scale: value is -1"}));
    CHECK(mentions(refusal(static_loss_scale{0x1p127f}),
                   {"static_loss_scale: value is 1.7014118e+38"}));
}

TEST_CASE("no scale is 1 after any step and refuses a state with another scale") {
    const no_loss_scale rule;
    rule.validate();
    CHECK(scales(rule, {bad, clean, bad, bad}) == std::vector<float>{1, 1, 1, 1});
    CHECK(refusal(rule, no_loss_scale::state{}) == "");
    CHECK(mentions(refusal(rule, no_loss_scale::state{2}),
                   {"no_loss_scale: state.scale is 2, expected a number from 1 to 1"}));
}
