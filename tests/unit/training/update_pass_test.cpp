// SPDX-License-Identifier: MIT
/// The decision between the two passes of a step, and the fused update after it.
#include <demi/training/update_pass.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <support/catch.hpp>

namespace {

constexpr float largest = std::numeric_limits<float>::max();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Remembers what it was given.
struct keep_gradient {
    template <class Real>
    void operator()(Real gradient, Real& weight) const {
        weight = gradient;
    }
};

/// The same with a bound of its own, which is not known to whoever calls it.
struct keep_bounded {
    float gradient_limit = 4;
    template <class Real>
    void operator()(Real gradient, Real& weight) const {
        const Real limit = gradient_limit;
        weight = demi::max(demi::min(gradient, limit), -limit);
    }
};

struct sum_up {
    template <class Real>
    void operator()(Real gradient, Real& weight, Real& sum) const {
        sum = sum + gradient;
        weight = weight - sum;
    }
};

struct scheduled {
    float factor = 1;
    scheduled at_step(std::uint64_t step) const { return {static_cast<float>(step)}; }
    template <class Real>
    void operator()(Real, Real& weight) const {
        weight = static_cast<Real>(factor);
    }
};

using rule = demi::dynamic_loss_scale;
using view = demi::loss_scaler_view<rule>;

/// A scaler and a step record, as they live in a backend's memory.
struct memory {
    rule settings{.initial_scale = 8.0f};
    view::record scaler{};
    demi::detail::step_record step{};

    memory() { scaler.state.rule = settings.initial(); }

    template <class Clip>
    void decide(const Clip& clip, bool already_unscaled = false, std::uint64_t items = 1) {
        demi::detail::make_decide_step(view(settings, &scaler), clip, &step, already_unscaled,
                                       items)();
    }
};

demi::gradient_statistics statistics(double norm, double magnitude) {
    demi::gradient_statistics result;
    result.sum_of_squares = norm * norm;
    result.largest_magnitude = magnitude;
    return result;
}

demi::gradient_statistics bad_statistics() {
    auto result = statistics(1, 1);
    result.first_kind = demi::non_finite::nan;
    result.first_non_finite = {2, 3};
    result.nan_count = 1;
    return result;
}

template <class Function = keep_gradient>
float given(float gradient, float unscale, float clip_factor, float clip_limit) {
    float weight = 0;
    demi::detail::fused_update<Function>{{}, unscale, clip_factor, clip_limit, true}(gradient,
                                                                                     weight);
    return weight;
}

}  // namespace

TEST_CASE("good gradients are applied with the inverse scale and the clip factor") {
    memory at;
    at.step.statistics = statistics(32, 20);
    at.decide(demi::clip_by_global_norm{1.0f});
    CHECK(at.step.apply);
    CHECK(at.step.steps == 1);
    CHECK(at.step.unscale == 0.125f);
    CHECK(at.step.clip_factor == 0.25f);
    CHECK(at.step.clip_limit == largest);
    CHECK(at.step.report.applied());
    CHECK(at.step.report.gradient_norm == 4.0);
    CHECK(at.step.report.clip_factor == 0.25f);
    CHECK(at.step.report.loss_scale == 8.0f);
}

TEST_CASE("the items of a window divide the gradients once") {
    memory at;
    at.step.statistics = statistics(32, 20);
    at.decide(demi::clip_by_value{0.5f}, false, 4);
    CHECK(at.step.unscale == 0.03125f);
    CHECK(at.step.clip_factor == 1.0f);
    CHECK(at.step.clip_limit == 0.5f);
    CHECK(at.step.report.gradient_norm == 1.0);
}

TEST_CASE("bad gradients are skipped, counted, and never advance the steps") {
    memory at;
    at.step.steps = 7;
    at.step.statistics = bad_statistics();
    at.decide(demi::no_clip{});
    CHECK_FALSE(at.step.apply);
    CHECK(at.step.steps == 7);
    CHECK(at.step.report.reason == demi::skip_reason::non_finite_gradient);
    CHECK(at.step.report.first_non_finite == demi::element_position{2, 3});
    CHECK(at.step.report.next_loss_scale == 4.0f);
    CHECK(at.step.report.skipped_steps == 1);
    CHECK(std::isnan(at.step.report.gradient_norm));

    at.step.statistics = statistics(8, 8);
    at.decide(demi::no_clip{});
    CHECK(at.step.apply);
    CHECK(at.step.steps == 8);
    CHECK(at.step.report.loss_scale == 4.0f);
}

TEST_CASE("gradients that are too large once unscaled are skipped") {
    memory at;
    at.scaler.state.rule.scale = 0.25f;
    at.step.statistics = statistics(2e38, 2e38);
    at.decide(demi::no_clip{});
    CHECK_FALSE(at.step.apply);
    CHECK(at.step.report.reason == demi::skip_reason::gradient_overflow);
}

TEST_CASE("gradients that unscale has divided are used as they are") {
    memory at;
    view(at.settings, &at.scaler).note(statistics(32, 20));
    at.step.statistics = statistics(4, 2.5);
    at.decide(demi::no_clip{}, true);
    CHECK(at.step.apply);
    CHECK(at.step.unscale == 1.0f);
    CHECK(at.step.report.gradient_norm == 4.0);
    CHECK(at.step.report.loss_scale == 8.0f);
}

TEST_CASE("gradients that unscale has refused are never applied") {
    memory at;
    at.scaler.state.rule.scale = 0.25f;
    view(at.settings, &at.scaler).note(statistics(2e38, 2e38));
    at.step.statistics = statistics(2e38, 2e38);  // they are as they were
    at.decide(demi::no_clip{}, true);
    CHECK_FALSE(at.step.apply);
    CHECK(at.step.report.reason == demi::skip_reason::gradient_overflow);

    memory bad;
    view(bad.settings, &bad.scaler).note(bad_statistics());
    bad.step.statistics = statistics(1, 1);  // another list of this step was the bad one
    bad.decide(demi::no_clip{}, true);
    CHECK_FALSE(bad.step.apply);
    CHECK(bad.step.report.reason == demi::skip_reason::non_finite_gradient);
    CHECK(bad.step.report.first_non_finite == demi::element_position{2, 3});
}

TEST_CASE("a bad value that appears after unscale is found") {
    memory at;
    view(at.settings, &at.scaler).note(statistics(32, 20));
    at.step.statistics = bad_statistics();
    at.decide(demi::no_clip{}, true);
    CHECK_FALSE(at.step.apply);
    CHECK(at.step.report.reason == demi::skip_reason::non_finite_gradient);
}

TEST_CASE("the update gets the gradient unscaled and clipped, both ways") {
    CHECK(given(64.0f, 0.125f, 0.5f, largest) == 4.0f);
    CHECK(given(64.0f, 0.125f, 1.0f, 3.0f) == 3.0f);
    CHECK(given(-64.0f, 0.125f, 1.0f, 3.0f) == -3.0f);
    // The product of the factors is below every float, the gradient is not.
    CHECK(given(0x1p120f, 0x1p-100f, 0x1p-100f, largest) == 0x1p-80f);
}

TEST_CASE("an update with a bound of its own gets the lesser of the two") {
    CHECK(given<keep_bounded>(3.0f, 0.5f, 1.0f, largest) == 1.5f);
    CHECK(given<keep_bounded>(-64.0f, 0.5f, 0.5f, 3.0f) == -3.0f);
    CHECK(given<keep_bounded>(64.0f, 0.5f, 0.5f, 3.0f) == 3.0f);
    CHECK(given<keep_bounded>(64.0f, 0.5f, 0.5f, 5.0f) == 4.0f);
    CHECK(given<keep_bounded>(-64.0f, 0.5f, 0.5f, largest) == -4.0f);
}

TEST_CASE("whatever gets so far, the update sees a finite gradient") {
    for (const float gradient : {infinity, -infinity, not_a_number, -not_a_number, largest}) {
        for (const float unscale : {0x1p-120f, 1.0f, 0x1p120f}) {
            CHECK(std::isfinite(given(gradient, unscale, 1.0f, largest)));
            CHECK(std::fabs(given(gradient, unscale, 1.0f, 2.0f)) <= 2.0f);
            CHECK(std::fabs(given<keep_bounded>(gradient, unscale, 1.0f, 2.0f)) <= 2.0f);
        }
    }
}

TEST_CASE("a pass reads its decision when it begins") {
    demi::detail::step_record record;
    record.unscale = 0.5f;
    record.clip_factor = 0.25f;
    record.clip_limit = largest;
    const demi::detail::update_pass<sum_up> pass{{}, &record};
    CHECK(pass.load().skip());
    record.apply = true;
    record.steps = 1;
    const auto loaded = pass.load();
    CHECK_FALSE(loaded.skip());
    float weight = 10, sum = 1;
    loaded(8.0f, weight, sum);
    CHECK(sum == 2.0f);
    CHECK(weight == 8.0f);
}

TEST_CASE("the compute copy is the new weight") {
    demi::detail::step_record record;
    record.apply = true;
    record.steps = 1;
    record.clip_limit = largest;
    const demi::detail::update_pass_with_copy<sum_up> pass{{{}, &record}};
    float copy = 0, weight = 10, sum = 0;
    pass.load()(3.0f, copy, weight, sum);
    CHECK(weight == 7.0f);
    CHECK(copy == 7.0f);
}

TEST_CASE("a rule with a schedule gets the number of the step that is being taken") {
    demi::detail::step_record record;
    record.apply = true;
    record.steps = 12;
    record.clip_limit = largest;
    const demi::detail::update_pass<scheduled> pass{{}, &record};
    float weight = 0;
    pass.load()(1.0f, weight);
    CHECK(weight == 12.0f);
}
