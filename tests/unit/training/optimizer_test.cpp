// SPDX-License-Identifier: MIT
/// Whole steps: what a user sees of an optimizer.
#include <demi/precision/convert.hpp>
#include <demi/training/adamw.hpp>
#include <demi/training/optimizer.hpp>
#include <demi/training/sgd.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <support/backends.hpp>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <support/random_values.hpp>
#include <utility>
#include <vector>

namespace {

using floats = std::vector<float>;
using halves = std::vector<demi::float16>;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// The simplest descent, to see what arrives at a rule.
constexpr demi::sgd plain{.learning_rate = 1.0f, .momentum = 0.0f};

struct narrow_masters {
    using compute_type = demi::float8_e4m3;
    using param_type = demi::bfloat16;
    using param_rounding = demi::stochastic;
};

template <class Backend, class Policy = demi::full_float32, class Rule = demi::sgd>
using optimizer = demi::optimizer<Rule, Policy, Backend>;

template <class T>
std::vector<T> values_of(std::span<T> tensor) {
    return {tensor.begin(), tensor.end()};
}

}  // namespace

TEMPLATE_TEST_CASE("a step without a scaler moves the user's own weights", "", DEMI_TEST_BACKENDS) {
    std::vector<floats> weights{floats(3, 10.0f), floats(40, 20.0f)};
    const std::vector<floats> gradients{floats(3, 2.0f), floats(40, 4.0f)};
    optimizer<TestType> optimizer(TestType{}, plain, weights);
    const auto report = optimizer.step(gradients);
    CHECK(report.get().applied());
    CHECK(report.get().applied_steps == 1);
    CHECK(weights[0] == floats(3, 8.0f));
    CHECK(weights[1] == floats(40, 16.0f));
    CHECK(optimizer.steps() == 1);
    CHECK(optimizer.master_weights()[1].data() == weights[1].data());
}

TEMPLATE_TEST_CASE("mixed precision updates the master weights and writes their copy", "",
                   DEMI_TEST_BACKENDS) {
    halves weights(20, demi::float16(1.0f));
    halves gradients(20, demi::float16(0x1p-4f));
    optimizer<TestType, demi::mixed_float16> optimizer(
        TestType{}, {.learning_rate = 0x1p-10f, .momentum = 0.0f}, weights);
    demi::loss_scaler scaler{TestType{}, demi::no_loss_scale{}};
    // A step of 2^-14 is lost in float16 beside 1, but not in the master weights.
    for (int step = 0; step < 16; ++step) optimizer.step(gradients, scaler);
    CHECK(values_of(optimizer.master_weights()[0]) == floats(20, 1.0f - 0x1p-10f));
    CHECK(weights == halves(20, demi::float16(1.0f - 0x1p-10f)));
    CHECK(gradients == halves(20, demi::float16(0x1p-4f)));
}

TEMPLATE_TEST_CASE("a power-of-two scale changes no bit of any weight", "", DEMI_TEST_BACKENDS) {
    std::mt19937_64 random(1);
    std::size_t wrong = 0;
    for (int round = 0; round < 20; ++round) {
        const std::size_t count = random() % 70 + 1;
        const floats start = random_vector<float>(random, count, -3, 3);
        floats scaled_weights = start, plain_weights = start, first_unscaled_weights = start;
        optimizer<TestType, demi::full_float32, demi::adamw> scaled(TestType{}, {}, scaled_weights);
        optimizer<TestType, demi::full_float32, demi::adamw> control(TestType{}, {}, plain_weights);
        optimizer<TestType, demi::full_float32, demi::adamw> first_unscaled(TestType{}, {},
                                                                            first_unscaled_weights);
        const demi::dynamic_loss_scale rule{.initial_scale = 128.0f, .growth_interval = 2};
        demi::loss_scaler scaler{TestType{}, rule}, other{TestType{}, rule};
        const demi::clip_by_global_norm clip{1.0f};
        for (int step = 0; step < 5; ++step) {
            const floats gradients = random_vector<float>(random, count, -10, 2);
            control.step(gradients, clip);
            floats large = gradients;
            for (float& gradient : large) gradient *= scaler.scale();
            scaled.step(large, scaler, clip);
            other.unscale(large);
            wrong += !same_bits(large, gradients);
            first_unscaled.step(large, other, clip);
            wrong += other.unscaled();
        }
        wrong += !same_bits(scaled_weights, plain_weights);
        wrong += !same_bits(first_unscaled_weights, plain_weights);
        wrong += scaler.scale() != 512.0f || other.scale() != 512.0f;
    }
    CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("four steps with the third one poisoned equal a run without it", "",
                   DEMI_TEST_BACKENDS) {
    floats weights(9, 1.0f), control_weights(9, 1.0f);
    optimizer<TestType, demi::full_float32, demi::adamw> poisoned(TestType{}, {}, weights);
    optimizer<TestType, demi::full_float32, demi::adamw> control(TestType{}, {}, control_weights);
    demi::loss_scaler scaler{
        TestType{}, demi::dynamic_loss_scale{.initial_scale = 128.0f, .growth_interval = 1}};
    for (int step = 0; step < 4; ++step) {
        floats gradients(9, 0.25f * static_cast<float>(step + 1));
        if (step != 2) control.step(gradients);
        for (float& gradient : gradients) gradient *= scaler.scale();
        if (step == 2) gradients[4] = infinity;
        const auto report = poisoned.step(gradients, scaler).get();
        CHECK(report.applied() == (step != 2));
    }
    CHECK(same_bits(weights, control_weights));
    CHECK(scaler.scale() == 128.0f * 8.0f * 0.5f);
    CHECK(poisoned.steps() == 3);
}

TEMPLATE_TEST_CASE("clipping by norm is joint over all tensors and after unscaling", "",
                   DEMI_TEST_BACKENDS) {
    std::vector<floats> weights{floats(1), floats(1)};
    std::vector<floats> gradients{floats(1, 24.0f), floats(1, -32.0f)};
    optimizer<TestType> optimizer(TestType{}, plain, weights);
    demi::loss_scaler scaler{TestType{}, demi::static_loss_scale{8.0f}};
    const auto report = optimizer.step(gradients, scaler, demi::clip_by_global_norm{2.5f}).get();
    CHECK(report.gradient_norm == 5.0);
    CHECK(report.clip_factor == 0.5f);
    CHECK(weights == std::vector<floats>{floats(1, -1.5f), floats(1, 2.0f)});

    optimizer.step(gradients, scaler, demi::clip_by_global_norm{5.0f});
    CHECK(weights == std::vector<floats>{floats(1, -4.5f), floats(1, 6.0f)});
}

TEMPLATE_TEST_CASE("clipping by value bounds each unscaled gradient", "", DEMI_TEST_BACKENDS) {
    floats weights(3);
    const floats gradients{24.0f, -32.0f, 4.0f};
    optimizer<TestType> optimizer(TestType{}, plain, weights);
    demi::loss_scaler scaler{TestType{}, demi::static_loss_scale{8.0f}};
    const auto report = optimizer.step(gradients, scaler, demi::clip_by_value{1.0f}).get();
    CHECK(weights == floats{-1.0f, 1.0f, -0.5f});
    CHECK(report.clip_factor == 1.0f);
}

TEMPLATE_TEST_CASE("huge finite gradients are clipped, not lost", "", DEMI_TEST_BACKENDS) {
    floats weights(128);
    const floats gradients(128, 1e19f);
    optimizer<TestType> optimizer(TestType{}, plain, weights);
    const auto report = optimizer.step(gradients, demi::clip_by_global_norm{1.0f}).get();
    CHECK(report.applied());
    const float expected = -1.0f / std::sqrt(128.0f);
    CHECK(std::fabs(weights[0] / expected - 1) < 1e-6f);
}

TEMPLATE_TEST_CASE("a window of sums is divided once by its items", "", DEMI_TEST_BACKENDS) {
    // Thirteen items in micro-batches of 5, 5 and 3; the mean of their gradients is 7.
    floats weights(1, 10.0f);
    optimizer<TestType> optimizer(TestType{}, plain, weights);
    demi::loss_scaler scaler{TestType{}, demi::static_loss_scale{16.0f}};
    demi::accumulation_window window;
    floats gradients(1);
    float item = 1;
    for (const unsigned count : {5u, 5u, 3u}) {
        for (unsigned i = 0; i < count; ++i) gradients[0] += scaler.scale() * item++;
        window.add(count);
    }
    const auto report = optimizer.step(gradients, scaler, demi::no_clip{}, window).get();
    CHECK(std::fabs(weights[0] - 3.0f) <= 0x1p-21f);
    CHECK(std::fabs(report.gradient_norm - 7.0) <= 1e-12);
    CHECK(window.empty());
}

TEMPLATE_TEST_CASE("a skipped step changes nothing but the scale and the counts", "",
                   DEMI_TEST_BACKENDS) {
    std::vector<halves> weights{halves(5, demi::float16(1.0f)), halves(33, demi::float16(2.0f))};
    std::vector<halves> gradients{halves(5, demi::float16(1.0f)), halves(33, demi::float16(1.0f))};
    optimizer<TestType, demi::mixed_float16, demi::adamw> optimizer(TestType{}, {}, weights);
    demi::loss_scaler scaler{TestType{}};
    optimizer.step(gradients, scaler);
    const auto weights_before = weights;
    const floats master = values_of(optimizer.master_weights()[1]);
    const floats slot = values_of(optimizer.slot(1)[1]);

    gradients[1][32] = demi::from_bits<demi::float16>(0xfc00);
    const auto report = optimizer.step(gradients, scaler).get();
    CHECK(report.reason == demi::skip_reason::non_finite_gradient);
    CHECK(report.first_non_finite == demi::element_position{1, 32});
    CHECK(report.first_kind == demi::non_finite::minus_infinity);
    CHECK(report.infinity_count == 1);
    CHECK(report.loss_scale == 65536.0f);
    CHECK(report.next_loss_scale == 32768.0f);
    CHECK(same_bits(weights, weights_before));
    CHECK(same_bits(values_of(optimizer.master_weights()[1]), master));
    CHECK(same_bits(values_of(optimizer.slot(1)[1]), slot));
    CHECK(optimizer.steps() == 1);
}

TEMPLATE_TEST_CASE("a policy without a scale is checked all the same", "", DEMI_TEST_BACKENDS) {
    floats weights(4, 1.0f);
    optimizer<TestType> optimizer(TestType{}, plain, weights);
    const auto report = optimizer.step(floats{1, 1, not_a_number, 1}).get();
    CHECK(report.reason == demi::skip_reason::non_finite_gradient);
    CHECK(report.first_non_finite == demi::element_position{0, 2});
    CHECK(report.next_loss_scale == 1.0f);
    CHECK(weights == floats(4, 1.0f));
    optimizer.step(floats(4, not_a_number));
    const auto good = optimizer.step(floats(4, 0.5f)).get();
    CHECK(good.applied_steps == 1);
    CHECK(good.skipped_steps == 2);
}

TEMPLATE_TEST_CASE("a broken loss skips the step and leaves the scale", "", DEMI_TEST_BACKENDS) {
    floats weights(4, 1.0f);
    optimizer<TestType> optimizer(TestType{}, plain, weights);
    demi::loss_scaler scaler{TestType{}};
    scaler.observe_loss(not_a_number);
    const auto report = optimizer.step(floats(4, 1.0f), scaler).get();
    CHECK(report.reason == demi::skip_reason::non_finite_loss);
    CHECK(weights == floats(4, 1.0f));
    CHECK(scaler.scale() == 65536.0f);
    CHECK(optimizer.step(floats(4, 1.0f), scaler).get().applied());
}

TEMPLATE_TEST_CASE("a schedule sets the rule between steps", "", DEMI_TEST_BACKENDS) {
    floats weights(4, 1.0f);
    optimizer<TestType> optimizer(TestType{}, plain, weights);
    optimizer.rule().learning_rate = 0.25f;
    optimizer.step(floats(4, 1.0f));
    CHECK(weights == floats(4, 0.75f));

    optimizer.rule().learning_rate = not_a_number;
    CHECK(mentions(message_of<demi::invalid_argument>([&] { optimizer.step(floats(4, 1.0f)); }),
                   {"learning_rate", "nan"}));
    CHECK(weights == floats(4, 0.75f));
    CHECK(optimizer.steps() == 1);
}

TEMPLATE_TEST_CASE("weights that the engine writes reach the compute copy on demand", "",
                   DEMI_TEST_BACKENDS) {
    halves weights(20, demi::float16(1.0f));
    optimizer<TestType, demi::mixed_float16> optimizer(TestType{}, plain, weights);
    optimizer.master_weights()[0][19] = 5.0f;
    CHECK(static_cast<float>(weights[19]) == 1.0f);
    optimizer.weights_changed();
    CHECK(static_cast<float>(weights[19]) == 5.0f);
}

TEMPLATE_TEST_CASE("an engine's own master weights and copy are both written", "",
                   DEMI_TEST_BACKENDS) {
    floats masters(20, 1.0f + 0x1p-20f);
    std::vector<demi::bfloat16> computes(20);
    optimizer<TestType, demi::mixed_bfloat16> optimizer(TestType{}, plain, masters, computes);
    CHECK(computes == std::vector<demi::bfloat16>(20, demi::bfloat16(1.0f)));
    optimizer.step(floats(20, 0.5f));
    CHECK(masters == floats(20, 0.5f + 0x1p-20f));
    CHECK(computes == std::vector<demi::bfloat16>(20, demi::bfloat16(0.5f)));
}

TEMPLATE_TEST_CASE("stochastic rounding lets small updates through on average", "",
                   DEMI_TEST_BACKENDS) {
    // 2^-12 is a sixteenth of the distance to the next bfloat16 below 1.
    std::vector<demi::bfloat16> weights(4000, demi::bfloat16(1.0f));
    optimizer<TestType, demi::pure_bfloat16> optimizer(
        TestType{}, {.learning_rate = 0x1p-12f, .momentum = 0.0f}, weights);
    const floats gradients(4000, 1.0f);
    for (int step = 0; step < 16; ++step) optimizer.step(gradients);
    double mean = 0;
    for (const demi::bfloat16 weight : weights) mean += static_cast<double>(float{weight}) / 4000;
    CHECK(std::fabs(mean - (1 - 0x1p-8)) < 0x1p-12);
}

TEMPLATE_TEST_CASE("the compute copy is the rounding of the stored weights, narrow ones too", "",
                   DEMI_TEST_BACKENDS) {
    std::mt19937_64 random(9);
    std::vector<demi::float8_e4m3> weights(200);
    optimizer<TestType, narrow_masters, demi::adamw> optimizer(TestType{}, {.learning_rate = 0.03f},
                                                               weights);
    demi::loss_scaler scaler{TestType{}, demi::no_loss_scale{}};
    std::size_t wrong = 0;
    for (int step = 0; step < 20; ++step) {
        optimizer.step(random_vector<float>(random, 200, -6, 0), scaler);
        for (std::size_t i = 0; i < weights.size(); ++i) {
            wrong += !same_bits(weights[i],
                                demi::convert<demi::float8_e4m3>(optimizer.master_weights()[0][i]));
        }
    }
    CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("the rounding seed decides how weights are rounded", "", DEMI_TEST_BACKENDS) {
    const auto run = [](std::uint64_t seed) {
        std::vector<demi::bfloat16> weights(1000, demi::bfloat16(1.0f));
        optimizer<TestType, demi::pure_bfloat16> optimizer(
            TestType{}, {.learning_rate = 0x1p-10f, .momentum = 0.0f}, weights);
        optimizer.set_rounding_seed(seed);
        for (int step = 0; step < 4; ++step) optimizer.step(floats(1000, 1.0f));
        return weights;
    };
    CHECK(same_bits(run(1), run(1)));
    CHECK_FALSE(same_bits(run(1), run(2)));
}

TEMPLATE_TEST_CASE("parameters and gradients may be any range of tensors or handles", "",
                   DEMI_TEST_BACKENDS) {
    floats first(3, 1.0f), second(4, 2.0f);
    std::vector<std::unique_ptr<floats>> owners;
    owners.push_back(std::make_unique<floats>(3, 0.5f));
    owners.push_back(std::make_unique<floats>(4, 0.5f));
    optimizer<TestType> by_reference(TestType{}, plain,
                                     std::vector<std::reference_wrapper<floats>>{first, second});
    by_reference.step(owners);
    CHECK(first == floats(3, 0.5f));
    CHECK(second == floats(4, 1.5f));
    by_reference.step(demi::tensors(*owners[0], *owners[1]));
    CHECK(first == floats(3, 0.0f));
    by_reference.step(std::vector<floats*>{&first, &second});
    CHECK(second == floats(4, 0.0f));
}

TEMPLATE_TEST_CASE("an optimizer can be moved and goes on", "", DEMI_TEST_BACKENDS) {
    halves weights(20, demi::float16(4.0f));
    optimizer<TestType, demi::mixed_float16> first(TestType{}, plain, weights);
    demi::loss_scaler scaler{TestType{}, demi::no_loss_scale{}};
    first.step(floats(20, 1.0f), scaler);
    auto second = std::move(first);
    second.step(floats(20, 1.0f), scaler);
    CHECK(weights == halves(20, demi::float16(2.0f)));
    CHECK(second.steps() == 2);
}

TEMPLATE_TEST_CASE("a whole network steps the same on one thread as on all", "",
                   DEMI_TEST_BACKENDS) {
    std::mt19937_64 random(3);
    const floats start = random_vector<float>(random, 400001, -3, 3);
    const floats gradients = random_vector<float>(random, 400001, -10, 2);
    const auto run = [&](const TestType& where) {
        std::vector<demi::bfloat16> weights(start.size());
        TestType handle = where;
        demi::cast(handle, start, weights);
        optimizer<TestType, demi::pure_bfloat16, demi::adamw> optimizer(where, {}, weights);
        double norm = 0;
        for (int step = 0; step < 3; ++step) {
            norm = optimizer.step(gradients, demi::clip_by_global_norm{1.0f}).get().gradient_norm;
        }
        return std::pair(weights, norm);
    };
    const auto all = run(TestType{});
    if constexpr (std::same_as<TestType, demi::host_backend>) {
        const auto one = run(TestType(demi::host_settings{.threads = 1}));
        CHECK(same_bits(one.first, all.first));
        CHECK(one.second == all.second);
    }
    CHECK(same_bits(run(TestType{}).first, all.first));
}

TEST_CASE("settings that cannot work are refused when the optimizer is made") {
    floats weights(3, 1.0f);
    CHECK(mentions(message_of<demi::invalid_argument>([&] {
                       optimizer<reference_backend> made(reference_backend{},
                                                         {.learning_rate = -1.0f}, weights);
                   }),
                   {"sgd", "learning_rate", "-1"}));
    std::vector<floats> none;
    CHECK(mentions(message_of<demi::invalid_argument>([&] {
                       optimizer<reference_backend> made(reference_backend{}, plain, none);
                   }),
                   {"0 parameter tensors", "expected at least 1"}));
    struct null_tensor {
        float* data() { return nullptr; }
        std::size_t size() const { return 7; }
    };
    null_tensor null;
    CHECK(mentions(message_of<demi::invalid_argument>([&] {
                       optimizer<reference_backend> made(reference_backend{}, plain, null);
                   }),
                   {"null pointer", "7 elements"}));
}

TEMPLATE_TEST_CASE("bad arguments of a step are refused with weights, steps and scale unchanged",
                   "", DEMI_TEST_BACKENDS) {
    std::vector<floats> weights{floats(3, 1.0f), floats(4, 2.0f)};
    const auto before = weights;
    optimizer<TestType> optimizer(TestType{}, plain, weights);
    demi::loss_scaler scaler{TestType{}, demi::dynamic_loss_scale{.growth_interval = 1}};
    const auto scaler_before = scaler.state();
    const std::vector<floats> good{floats(3, 1.0f), floats(4, 1.0f)};
    const auto refused = [&](const auto& gradients, const auto& clip) {
        const auto text =
            message_of<demi::invalid_argument>([&] { optimizer.step(gradients, scaler, clip); });
        CHECK(weights == before);
        CHECK(optimizer.steps() == 0);
        CHECK(scaler.state() == scaler_before);
        return text;
    };
    const std::vector<floats> one_tensor{floats(3, 1.0f)};
    CHECK(mentions(refused(one_tensor, demi::no_clip{}), {"1 gradient tensors", "expected 2"}));
    const std::vector<floats> none;
    CHECK(mentions(refused(none, demi::no_clip{}), {"0 gradient tensors", "expected 2"}));
    const std::vector<floats> other_size{floats(3, 1.0f), floats(5, 1.0f)};
    CHECK(mentions(refused(other_size, demi::no_clip{}),
                   {"gradient tensor 1", "5 elements", "expected 4"}));
    CHECK(mentions(refused(good, demi::clip_by_global_norm{0.0f}), {"max_norm", "0"}));
    CHECK(mentions(refused(good, demi::clip_by_value{not_a_number}), {"max_value", "nan"}));

    CHECK(mentions(refused(good, demi::clip_by_global_norm{infinity}), {"max_norm", "inf"}));

    demi::accumulation_window window;
    CHECK(mentions(message_of<demi::invalid_argument>(
                       [&] { optimizer.step(good, scaler, demi::no_clip{}, window); }),
                   {"window of 0 items", "expected at least 1"}));
    CHECK(weights == before);
    CHECK(scaler.state() == scaler_before);
}

TEMPLATE_TEST_CASE("gradients that lie partly in the weights are refused before anything happens",
                   "", DEMI_TEST_BACKENDS) {
    floats memory(10, 1.0f);
    std::span<float> weights(memory.data(), 6), gradients(memory.data() + 3, 6);
    optimizer<TestType> optimizer(TestType{}, plain, weights);
    demi::loss_scaler scaler{TestType{}, demi::dynamic_loss_scale{.growth_interval = 1}};
    const auto scaler_before = scaler.state();
    CHECK(mentions(message_of<demi::invalid_argument>([&] { optimizer.step(gradients, scaler); }),
                   {"optimizer", "tensor 0", "overlaps"}));
    CHECK(memory == floats(10, 1.0f));
    CHECK(optimizer.steps() == 0);
    CHECK(scaler.state() == scaler_before);
}

TEST_CASE("An engine with masters and a compute copy runs under a policy of one format too") {
    std::vector<float> weights{1, 2, 3};
    std::vector<float> alone = weights;
    const std::vector<float> slope{1, -1, 2};
    const demi::host_backend where;
    demi::optimizer<demi::sgd> twin{where, {.learning_rate = 0.5f}, weights, weights};
    demi::optimizer<demi::sgd> single{where, {.learning_rate = 0.5f}, alone};
    twin.step(slope);
    single.step(slope);
    CHECK(weights == alone);
    CHECK(weights == std::vector<float>{0.5f, 2.5f, 2});

    std::vector<float> copy(3);
    demi::optimizer<demi::sgd> apart{where, {.learning_rate = 0.5f}, weights, copy};
    CHECK(copy == weights);
    apart.step(slope);
    CHECK(copy == weights);
}
