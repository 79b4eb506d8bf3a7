// SPDX-License-Identifier: MIT
/// AdamW by hand, against golden runs in double, its limits and its settings.
#include <demi/training/adamw.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <support/backends.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <support/optimizer_golden.hpp>
#include <vector>

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float largest = std::numeric_limits<float>::max();

struct parameter {
    float weight = 1;
    float mean = 0;
    float square = 0;
};

parameter run(const demi::adamw& rule, const std::vector<float>& gradients, parameter at = {}) {
    std::uint64_t step = 0;
    for (const float gradient : gradients) {
        rule.at_step(++step)(gradient, at.weight, at.mean, at.square);
    }
    return at;
}

}  // namespace

TEST_CASE("the first step moves by the learning rate against the sign of the gradient") {
    const demi::adamw rule{.learning_rate = 0.125f, .weight_decay = 0.0f};
    for (const float gradient : {3.0f, 1e-5f, 1e5f}) {
        CHECK(std::fabs(run(rule, {gradient}).weight - 0.875f) < 2e-4f);
        CHECK(std::fabs(run(rule, {-gradient}).weight - 1.125f) < 2e-4f);
    }
}

TEST_CASE("a gradient of 0 moves nothing but the decay") {
    CHECK(run({.weight_decay = 0.0f}, {0.0f, 0.0f, 0.0f}).weight == 1.0f);
    const parameter decayed =
        run({.learning_rate = 0.5f, .weight_decay = 0.25f}, {0.0f}, {.weight = 8.0f});
    CHECK(decayed.weight == 7.0f);
    CHECK(decayed.square == 0.0f);
}

TEST_CASE("the decay is decoupled from the gradient's history") {
    const demi::adamw with{.weight_decay = 0.5f}, without{.weight_decay = 0.0f};
    const std::vector<float> gradients{1.0f, -2.0f, 0.5f};
    const parameter a = run(with, gradients), b = run(without, gradients);
    CHECK(a.mean == b.mean);
    CHECK(a.square == b.square);
    CHECK(a.weight < b.weight);
}

TEMPLATE_TEST_CASE("AdamW follows the golden runs", "", DEMI_TEST_BACKENDS) {
    const auto runs = golden_runs("adamw");
    REQUIRE(runs.size() == 4);
    for (const golden_run& golden : runs) {
        const auto& settings = golden.settings;
        const demi::adamw rule{settings.at("learning_rate"), settings.at("beta1"),
                               settings.at("beta2"), settings.at("epsilon"),
                               settings.at("weight_decay")};
        // Twelve steps, each of them rounds the weight twice, and the update by a few parts in
        // 2^24.
        CHECK(golden_distance(TestType{}, rule, golden) < 12);
    }
}

TEST_CASE("the largest gradients leave every value finite and the parameter alive") {
    const parameter after = run({}, std::vector<float>(100, largest));
    CHECK(std::isfinite(after.weight));
    CHECK(std::isfinite(after.mean));
    CHECK(std::isfinite(after.square));
    CHECK(std::fabs(after.weight) < 2.0f);
    // A square that is stuck at infinity would never let it move again.
    const demi::adamw quick{
        .learning_rate = 0.125f, .beta1 = 0.5f, .beta2 = 0.5f, .weight_decay = 0.0f};
    std::vector<float> gradients(500, 1.0f);
    gradients[0] = largest;
    const float before = run(quick, {gradients.begin(), gradients.end() - 1}).weight;
    CHECK(std::fabs(before - 0.125f - run(quick, gradients).weight) < 1e-3f);
}

TEST_CASE("the correction stays right for a very long run") {
    const auto update = demi::adamw{}.at_step(std::uint64_t{1} << 62);
    CHECK(update.step_size == 1e-3f);
    CHECK(update.root_correction == 1.0f);
    const auto early = demi::adamw{}.at_step(1000);
    const double power = std::pow(static_cast<double>(0.999f), 1000);
    CHECK(std::fabs(static_cast<double>(early.root_correction) * std::sqrt(1 - power) - 1) < 1e-7);
}

TEST_CASE("settings of AdamW that cannot work are refused by name and value") {
    const auto refused = [](const demi::adamw& rule) {
        return message_of<demi::invalid_argument>([&] { rule.validate(); });
    };
    CHECK(refused({}).empty());
    CHECK(refused({.beta1 = 0.0f, .weight_decay = 0.0f}).empty());
    CHECK(mentions(refused({.learning_rate = -1.0f}), {"adamw", "learning_rate", "-1"}));
    CHECK(mentions(refused({.learning_rate = infinity}), {"learning_rate", "inf"}));
    CHECK(mentions(refused({.beta1 = 1.0f}), {"beta1", "of 1,", "below 1"}));
    CHECK(mentions(refused({.beta2 = 1.5f}), {"beta2", "1.5"}));
    CHECK(mentions(refused({.beta2 = not_a_number}), {"beta2", "nan"}));
    CHECK(mentions(refused({.epsilon = 0.0f}), {"epsilon", "of 0,"}));
    CHECK(mentions(refused({.weight_decay = -0.25f}), {"weight_decay", "-0.25"}));
}
