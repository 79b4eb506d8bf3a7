// SPDX-License-Identifier: MIT
/// Scaling a loss, unscaling gradients all or nothing, and the order of the calls of a step.
#include <demi/scaling/loss_scaler.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <support/backends.hpp>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <vector>

namespace {

using floats = std::vector<float>;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Small numbers, so that a test sees every move.
constexpr demi::dynamic_loss_scale quick{
    .initial_scale = 8.0f, .growth_interval = 2, .floor = 1.0f, .ceiling = 64.0f};

template <class Scaler, class... Gradients>
demi::step_report one_step(Scaler& scaler, Gradients&... gradients) {
    scaler.unscale(gradients...);
    scaler.step_is_safe();
    return scaler.update().get();
}

}  // namespace

TEMPLATE_TEST_CASE("the scale begins where the rule says and weighs a micro-batch", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where;
    const demi::loss_scaler standard{where};
    CHECK(standard.scale() == 65536.0f);
    const demi::loss_scaler scaler{where, quick};
    CHECK(scaler.scale() == 8.0f);
    CHECK(scaler.scale(0.25f) == 2.0f);
    CHECK(scaler.rule() == quick);
}

TEMPLATE_TEST_CASE("unscaling divides in place, several lists and formats at once", "",
                   DEMI_TEST_BACKENDS) {
    demi::loss_scaler scaler{TestType{}, quick};
    std::vector<floats> first{{8, 16}, {}, {-24}};
    std::vector<demi::bfloat16> second(20, demi::bfloat16(4.0f));
    std::vector<double> third{1e-300, 8e30};
    scaler.unscale(first, second, third);
    CHECK(first == std::vector<floats>{{1, 2}, {}, {-3}});
    CHECK(second == std::vector<demi::bfloat16>(20, demi::bfloat16(0.5f)));
    CHECK(third == std::vector<double>{1e-300 / 8, 1e30});
    CHECK(scaler.step_is_safe());
}

TEMPLATE_TEST_CASE("a bad value anywhere leaves every gradient as it was", "", DEMI_TEST_BACKENDS) {
    std::mt19937_64 random(1);
    std::size_t changed = 0, called_safe = 0, wrong_place = 0, wrong_kind = 0, wrong_scale = 0;
    for (int round = 0; round < 500; ++round) {
        demi::loss_scaler scaler{TestType{}, quick};
        std::vector<floats> first{floats(random() % 40 + 1, 3.0f), floats(random() % 90 + 1, 5.0f)};
        std::vector<floats> second{floats(random() % 40 + 1, 7.0f)};
        const std::size_t tensor = random() % 3;
        floats& target = tensor < 2 ? first[tensor] : second[0];
        const std::size_t index = random() % target.size();
        const float bad = std::vector<float>{not_a_number, infinity, -infinity}[random() % 3];
        target[index] = bad;
        const auto first_before = first, second_before = second;

        scaler.unscale(first, second);
        changed += !same_bits(first, first_before) || !same_bits(second, second_before);
        called_safe += scaler.step_is_safe();
        const demi::step_report report = scaler.update().get();
        wrong_place += !(report.first_non_finite == demi::element_position{tensor, index});
        wrong_kind += report.first_kind != (std::isnan(bad) ? demi::non_finite::nan
                                            : bad > 0       ? demi::non_finite::plus_infinity
                                                            : demi::non_finite::minus_infinity);
        wrong_scale += report.reason != demi::skip_reason::non_finite_gradient ||
                       report.loss_scale != 8.0f || report.next_loss_scale != 4.0f ||
                       scaler.scale() != 4.0f;
    }
    CHECK(changed == 0);
    CHECK(called_safe == 0);
    CHECK(wrong_place == 0);
    CHECK(wrong_kind == 0);
    CHECK(wrong_scale == 0);
}

TEMPLATE_TEST_CASE("a safe step is reported with its unscaled norm", "", DEMI_TEST_BACKENDS) {
    demi::loss_scaler scaler{TestType{}, quick};
    floats gradients{24, -32};
    scaler.unscale(gradients);
    CHECK(scaler.unscaled());
    CHECK(scaler.step_is_safe());
    const demi::step_report report = scaler.update().get();
    CHECK_FALSE(scaler.unscaled());
    CHECK(report.applied());
    CHECK(report.gradient_norm == 5.0);
    CHECK(report.clip_factor == 1.0f);
    CHECK(report.applied_steps == 1);
    CHECK(report.skipped_steps == 0);
}

TEMPLATE_TEST_CASE("the scale backs off after a bad step and grows after enough good ones", "",
                   DEMI_TEST_BACKENDS) {
    // Worked by hand: factor 0.25, interval 2.
    const demi::dynamic_loss_scale rule{
        .initial_scale = 4.0f, .backoff_factor = 0.25, .growth_interval = 2};
    demi::loss_scaler scaler{TestType{}, rule};
    floats gradients{1};
    CHECK(one_step(scaler, gradients).next_loss_scale == 4.0f);
    CHECK(one_step(scaler, gradients).next_loss_scale == 8.0f);
    gradients[0] = infinity;
    CHECK(one_step(scaler, gradients).next_loss_scale == 2.0f);
    const auto second = one_step(scaler, gradients);
    CHECK(second.next_loss_scale == 0.5f);
    CHECK(second.consecutive_skips == 2);
    gradients[0] = 1;
    const auto good = one_step(scaler, gradients);
    CHECK(good.consecutive_skips == 0);
    CHECK(good.applied_steps == 3);
    CHECK(good.skipped_steps == 2);
}

TEMPLATE_TEST_CASE("reports follow the rule step by step over any history", "",
                   DEMI_TEST_BACKENDS) {
    std::mt19937_64 random(2);
    std::size_t wrong = 0;
    for (int run = 0; run < 100; ++run) {
        demi::dynamic_loss_scale rule = quick;
        rule.hysteresis = static_cast<std::int32_t>(1 + random() % 3);
        demi::loss_scaler scaler{TestType{}, rule};
        demi::loss_scaler_state<demi::dynamic_loss_scale> expected{.rule = rule.initial()};
        for (int step = 0; step < 30; ++step) {
            const bool bad = random() % 3 == 0;
            floats gradients(5, 1.0f);
            if (bad) gradients[random() % 5] = not_a_number;
            const auto report = one_step(scaler, gradients);
            wrong += report.loss_scale != expected.rule.scale;
            expected.rule = rule.next(expected.rule, bad);
            ++(bad ? expected.skipped_steps : expected.applied_steps);
            expected.consecutive_skips = bad ? expected.consecutive_skips + 1 : 0;
            wrong += report.next_loss_scale != expected.rule.scale;
            wrong += report.applied() == bad;
            wrong += !(scaler.state() == expected);
        }
    }
    CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("the scale stays the same until the step is closed", "", DEMI_TEST_BACKENDS) {
    demi::loss_scaler scaler{TestType{}, quick};
    floats gradients{infinity};
    scaler.unscale(gradients);
    CHECK(scaler.scale() == 8.0f);
    CHECK_FALSE(scaler.step_is_safe());
    CHECK(scaler.scale() == 8.0f);
    scaler.update();
    CHECK(scaler.scale() == 4.0f);
}

TEMPLATE_TEST_CASE("a loss that is not finite skips the step and keeps the scale", "",
                   DEMI_TEST_BACKENDS) {
    for (const float loss : {not_a_number, infinity, -infinity}) {
        demi::loss_scaler scaler{TestType{}, quick};
        const auto before = scaler.state().rule;
        scaler.observe_loss(1.0f);
        scaler.observe_loss(loss);
        scaler.observe_loss(2.0f);
        floats gradients{8};
        scaler.unscale(gradients);
        CHECK_FALSE(scaler.step_is_safe());
        const demi::step_report report = scaler.update().get();
        CHECK(report.reason == demi::skip_reason::non_finite_loss);
        CHECK(report.next_loss_scale == 8.0f);
        CHECK(report.skipped_steps == 1);
        CHECK(scaler.state().rule == before);

        gradients = {8};
        CHECK(one_step(scaler, gradients).applied());
    }
}

TEMPLATE_TEST_CASE("gradients that only overflow once unscaled are not used either", "",
                   DEMI_TEST_BACKENDS) {
    demi::loss_scaler scaler{TestType{}, demi::dynamic_loss_scale{.initial_scale = 0.25f}};
    floats gradients{1.0f, 3e38f};
    const floats before = gradients;
    scaler.unscale(gradients);
    CHECK_FALSE(scaler.step_is_safe());
    CHECK(gradients == before);
    const auto report = scaler.update().get();
    CHECK(report.reason == demi::skip_reason::gradient_overflow);
    CHECK(report.skipped_steps == 1);
}

TEMPLATE_TEST_CASE("safe means unscaled and finite, for any scale and up to the last float", "",
                   DEMI_TEST_BACKENDS) {
    std::mt19937_64 random(3);
    std::size_t wrong = 0, safe_steps = 0;
    for (int round = 0; round < 3000; ++round) {
        const float scale = static_cast<float>(1 + random() % 0xffffff) * 0x1p-24f;
        demi::loss_scaler scaler{TestType{}, demi::static_loss_scale{scale}};
        // Around the largest float times the scale, a few steps up or down.
        float gradient = std::numeric_limits<float>::max() * scale;
        for (auto n = random() % 4; n > 0; --n) gradient = std::nextafter(gradient, infinity);
        for (auto n = random() % 4; n > 0; --n) gradient = std::nextafter(gradient, 0.0f);
        floats gradients{1.0f, gradient};
        const floats before = gradients;
        scaler.unscale(gradients);
        const bool safe = scaler.step_is_safe();
        const auto report = scaler.update().get();
        const bool unscaled = gradients[0] != before[0] || scale == 1.0f;
        safe_steps += safe;
        wrong += safe != unscaled || safe != report.applied();
        wrong += safe && !std::isfinite(gradients[1]);
        wrong += !safe && !same_bits(gradients, before);
    }
    CHECK(wrong == 0);
    CHECK(safe_steps > 300);
    CHECK(safe_steps < 2700);
}

TEMPLATE_TEST_CASE("the static scale and no scale are the same loop", "", DEMI_TEST_BACKENDS) {
    floats gradients{64, not_a_number};
    demi::loss_scaler fixed{TestType{}, demi::static_loss_scale{128.0f}};
    CHECK(fixed.scale() == 128.0f);
    CHECK(one_step(fixed, gradients).next_loss_scale == 128.0f);
    gradients[1] = 128;
    CHECK(one_step(fixed, gradients).applied());
    CHECK(gradients == floats{0.5f, 1});

    demi::loss_scaler none{TestType{}, demi::no_loss_scale{}};
    CHECK(none.scale(0.5f) == 0.5f);
    CHECK(one_step(none, gradients).applied());
    CHECK(gradients == floats{0.5f, 1});
    gradients[0] = not_a_number;
    const auto report = one_step(none, gradients);
    CHECK(report.reason == demi::skip_reason::non_finite_gradient);
    CHECK(report.next_loss_scale == 1.0f);
}

TEMPLATE_TEST_CASE("calls in another order are refused and change nothing", "",
                   DEMI_TEST_BACKENDS) {
    demi::loss_scaler scaler{TestType{}, quick};
    const auto fresh = scaler.state();
    CHECK(mentions(message_of<demi::invalid_state>([&] { scaler.step_is_safe(); }),
                   {"step_is_safe", "before unscale"}));
    CHECK(mentions(message_of<demi::invalid_state>([&] { scaler.update(); }),
                   {"update", "before unscale"}));
    CHECK(scaler.state() == fresh);

    floats gradients{8};
    scaler.unscale(gradients);
    CHECK(mentions(message_of<demi::invalid_state>([&] { scaler.unscale(gradients); }),
                   {"unscale", "expected update or discard"}));
    CHECK(gradients == floats{1});
    CHECK(mentions(message_of<demi::invalid_state>([&] { scaler.state(); }), {"state"}));

    scaler.update();
    CHECK_THROWS_AS(scaler.update(), demi::invalid_state);
    CHECK(scaler.state().applied_steps == 1);
}

TEMPLATE_TEST_CASE("a discarded step leaves no trace in the scaler", "", DEMI_TEST_BACKENDS) {
    demi::loss_scaler scaler{TestType{}, quick};
    const auto fresh = scaler.state();
    floats gradients{not_a_number};
    scaler.observe_loss(not_a_number);
    scaler.unscale(gradients);
    scaler.discard();
    CHECK(scaler.state() == fresh);
    scaler.discard();
    gradients[0] = 8;
    scaler.unscale(gradients);
    CHECK(scaler.step_is_safe());
}

TEMPLATE_TEST_CASE("no gradients at all is an error that leaves the step open", "",
                   DEMI_TEST_BACKENDS) {
    demi::loss_scaler scaler{TestType{}, quick};
    std::vector<floats> none;
    CHECK(mentions(message_of<demi::invalid_argument>([&] { scaler.unscale(none); }),
                   {"0 tensors", "expected at least 1", "discard"}));
    CHECK_FALSE(scaler.unscaled());
    floats gradients{8};
    scaler.unscale(none, gradients);
    CHECK(gradients == floats{1});
    scaler.update();

    floats empty;
    scaler.unscale(empty);
    CHECK(scaler.step_is_safe());
}

TEMPLATE_TEST_CASE("a scaler is not made with settings that cannot work", "", DEMI_TEST_BACKENDS) {
    const TestType where;
    const auto refused = [&](const auto& rule) {
        return message_of<demi::invalid_argument>([&] { demi::loss_scaler scaler{where, rule}; });
    };
    CHECK(
        mentions(refused(demi::dynamic_loss_scale{.initial_scale = 0.0f}), {"initial_scale", "0"}));
    CHECK(mentions(refused(demi::dynamic_loss_scale{.initial_scale = infinity}),
                   {"initial_scale", "inf"}));
    CHECK(
        mentions(refused(demi::dynamic_loss_scale{.growth_factor = 1.0}), {"growth_factor", "1"}));
    CHECK(mentions(refused(demi::dynamic_loss_scale{.growth_interval = 0}),
                   {"growth_interval", "0"}));
    CHECK(mentions(refused(demi::static_loss_scale{not_a_number}), {"value", "nan"}));
    CHECK(mentions(refused(demi::static_loss_scale{-1.0f}), {"value", "-1"}));
}

TEMPLATE_TEST_CASE("a factor that would make every gradient 0 or garbage is refused", "",
                   DEMI_TEST_BACKENDS) {
    const demi::loss_scaler scaler{TestType{}, quick};
    CHECK(
        mentions(message_of<demi::invalid_argument>([&] { scaler.scale(0.0f); }), {"weight", "0"}));
    CHECK(mentions(message_of<demi::invalid_argument>([&] { scaler.scale(not_a_number); }),
                   {"weight", "nan"}));
    CHECK(mentions(message_of<demi::invalid_argument>([&] { scaler.scale(infinity); }),
                   {"weight", "inf"}));
    CHECK(scaler.scale(-1.0f) == -8.0f);
}

TEMPLATE_TEST_CASE("a state goes to another scaler, which then continues the same", "",
                   DEMI_TEST_BACKENDS) {
    demi::loss_scaler scaler{TestType{}, quick};
    floats gradients{infinity};
    one_step(scaler, gradients);
    gradients[0] = 1;
    one_step(scaler, gradients);

    demi::loss_scaler other{TestType{}, quick};
    other.restore(scaler.state());
    CHECK(other.state() == scaler.state());
    for (int step = 0; step < 5; ++step) {
        gradients[0] = 1;
        const auto a = one_step(scaler, gradients);
        gradients[0] = 1;
        const auto b = one_step(other, gradients);
        CHECK(a.next_loss_scale == b.next_loss_scale);
        CHECK(a.applied_steps == b.applied_steps);
    }
}

TEMPLATE_TEST_CASE("a state that the rule cannot have made is refused and changes nothing", "",
                   DEMI_TEST_BACKENDS) {
    demi::loss_scaler scaler{TestType{}, quick};
    const auto before = scaler.state();
    const auto refused = [&](float scale, std::int32_t clean_steps) {
        auto state = before;
        state.rule.scale = scale;
        state.rule.clean_steps = clean_steps;
        state.applied_steps = 77;
        return message_of<demi::invalid_argument>([&] { scaler.restore(state); });
    };
    CHECK(mentions(refused(0.0f, 0), {"scale", "0"}));
    CHECK(mentions(refused(not_a_number, 0), {"scale", "nan"}));
    CHECK(mentions(refused(128.0f, 0), {"scale", "128", "64"}));
    CHECK(mentions(refused(8.0f, -1), {"clean_steps", "-1"}));
    CHECK(scaler.state() == before);
}

TEMPLATE_TEST_CASE("four steps with the third one poisoned end at a known scale", "",
                   DEMI_TEST_BACKENDS) {
    demi::loss_scaler scaler{
        TestType{}, demi::dynamic_loss_scale{.initial_scale = 128.0f, .growth_interval = 1}};
    for (int step = 0; step < 4; ++step) {
        floats gradients{step == 2 ? infinity : 1.0f};
        one_step(scaler, gradients);
    }
    CHECK(scaler.scale() == 128.0f * 8.0f * 0.5f);
}

TEST_CASE("the view of a scaler decides from what was noted") {
    using view = demi::loss_scaler_view<demi::dynamic_loss_scale>;
    view::record record{};
    record.state.rule = quick.initial();
    const view scaler(quick, &record);
    CHECK(scaler.scale() == 8.0f);
    CHECK(scaler.inverse_scale() == 0.125f);
    CHECK(scaler.verdict(1.0) == demi::skip_reason::none);

    demi::gradient_statistics found;
    found.largest_magnitude = 1e30;
    scaler.note(found);
    CHECK(scaler.verdict(1.0) == demi::skip_reason::none);
    CHECK(scaler.verdict(1e10) == demi::skip_reason::gradient_overflow);
    found.first_kind = demi::non_finite::nan;
    found.nan_count = 1;
    scaler.note(found);
    CHECK(scaler.verdict(1.0) == demi::skip_reason::non_finite_gradient);
    scaler.note({});
    CHECK(scaler.verdict(1.0) == demi::skip_reason::non_finite_gradient);
    scaler.note_loss(false);
    CHECK(scaler.verdict(1.0) == demi::skip_reason::non_finite_loss);

    const auto report = scaler.close(0.125);
    CHECK(std::isnan(report.gradient_norm));
    CHECK(report.nan_count == 1);
    CHECK(scaler.verdict(1.0) == demi::skip_reason::none);
}
