// SPDX-License-Identifier: MIT
/// SGD by hand, against golden runs in double, and its settings.
#include <demi/training/sgd.hpp>

#include <limits>
#include <support/backends.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <support/optimizer_golden.hpp>
#include <vector>

namespace {

struct pair {
    float weight;
    float velocity;
};

pair step(const demi::sgd& rule, float gradient, pair at) {
    rule(gradient, at.weight, at.velocity);
    return at;
}

}  // namespace

TEST_CASE("plain SGD subtracts the gradient times the rate") {
    const demi::sgd rule{.learning_rate = 0.5f, .momentum = 0.0f};
    CHECK(step(rule, 4.0f, {10.0f, 0.0f}).weight == 8.0f);
}

TEST_CASE("momentum carries a part of the velocity on") {
    const demi::sgd rule{.learning_rate = 0.5f, .momentum = 0.5f};
    const pair first = step(rule, 4.0f, {10.0f, 0.0f});
    CHECK(first.velocity == 4.0f);
    CHECK(first.weight == 8.0f);
    const pair second = step(rule, 4.0f, first);
    CHECK(second.velocity == 6.0f);
    CHECK(second.weight == 5.0f);
    CHECK(step(rule, 0.0f, second).weight == 3.5f);
}

TEST_CASE("a Nesterov step looks one velocity ahead") {
    const demi::sgd rule{.learning_rate = 0.5f, .momentum = 0.5f, .nesterov = true};
    const pair first = step(rule, 4.0f, {10.0f, 0.0f});
    CHECK(first.velocity == 4.0f);
    CHECK(first.weight == 7.0f);
}

TEST_CASE("weight decay is a part of the gradient") {
    const demi::sgd rule{.learning_rate = 1.0f, .momentum = 0.0f, .weight_decay = 0.25f};
    CHECK(step(rule, 1.0f, {8.0f, 0.0f}).weight == 5.0f);
}

TEMPLATE_TEST_CASE("SGD follows the golden runs", "", DEMI_TEST_BACKENDS) {
    const auto runs = golden_runs("sgd");
    REQUIRE(runs.size() == 4);
    for (const golden_run& run : runs) {
        const auto& settings = run.settings;
        const demi::sgd rule{settings.at("learning_rate"), settings.at("momentum"),
                             settings.at("weight_decay"), settings.at("nesterov") != 0.0f};
        // Twelve steps, each of them rounds the weight once and the velocity three times.
        CHECK(golden_distance(TestType{}, rule, run) < 8);
    }
}

TEST_CASE("settings of SGD that cannot work are refused by name and value") {
    const auto refused = [](const demi::sgd& rule) {
        return message_of<demi::invalid_argument>([&] { rule.validate(); });
    };
    constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
    constexpr float infinity = std::numeric_limits<float>::infinity();
    CHECK(refused({}).empty());
    CHECK(refused({.learning_rate = 0.0f, .momentum = 0.0f}).empty());
    CHECK(mentions(refused({.learning_rate = -1.0f}), {"sgd", "learning_rate", "-1"}));
    CHECK(mentions(refused({.learning_rate = infinity}), {"learning_rate", "inf"}));
    CHECK(mentions(refused({.learning_rate = not_a_number}), {"learning_rate", "nan"}));
    CHECK(mentions(refused({.momentum = 1.0f}), {"momentum", "of 1,", "below 1"}));
    CHECK(mentions(refused({.momentum = -0.5f}), {"momentum", "-0.5"}));
    CHECK(mentions(refused({.weight_decay = -0.5f}), {"weight_decay", "-0.5"}));
}
