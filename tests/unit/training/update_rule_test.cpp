// SPDX-License-Identifier: MIT
/// What is an update rule, and what is none.
#include <demi/training/update_rule.hpp>

#include <cstdint>
#include <string>
#include <support/catch.hpp>

namespace {

struct template_rule {
    float rate = 0.5f;
    template <class Real>
    void operator()(Real gradient, Real& weight) const {
        weight = weight - static_cast<Real>(rate) * gradient;
    }
};

struct float_rule {
    static constexpr std::size_t slots = 2;
    void operator()(float gradient, float& weight, float& first, float& second) const {
        first += gradient;
        second += first;
        weight -= second;
    }
};

struct rule_with_schedule {
    static constexpr std::size_t slots = 1;
    struct update {
        float rate;
        void operator()(float gradient, float& weight, float& sum) const {
            sum += gradient;
            weight -= rate * sum;
        }
    };
    update at_step(std::uint64_t step) const { return {1.0f / static_cast<float>(step)}; }
};

struct without_function {
    static constexpr std::size_t slots = 1;
};

struct slot_not_taken {
    static constexpr std::size_t slots = 1;
    void operator()(float, float&) const {}
};

struct slot_not_declared {
    void operator()(float, float&, float&) const {}
};

struct not_const {
    void operator()(float, float&) {}
};

struct not_trivially_copyable {
    std::string name;
    void operator()(float, float&) const {}
};

}  // namespace

static_assert(demi::update_rule<template_rule>);
static_assert(demi::update_rule<float_rule>);
static_assert(demi::update_rule<rule_with_schedule>);
static_assert(!demi::update_rule<without_function>);
static_assert(!demi::update_rule<slot_not_taken>);
static_assert(!demi::update_rule<slot_not_declared>);
static_assert(!demi::update_rule<not_const>);
static_assert(!demi::update_rule<not_trivially_copyable>);
static_assert(!demi::update_rule<int>);

TEST_CASE("a rule keeps as many values per parameter as it says, none if it says nothing") {
    CHECK(demi::detail::slot_count<template_rule>() == 0);
    CHECK(demi::detail::slot_count<float_rule>() == 2);
}

TEST_CASE("a rule with a schedule gives the function of one step, any other gives itself") {
    float weight = 10, sum = 0;
    demi::detail::rule_at_step(rule_with_schedule{}, 4)(8.0f, weight, sum);
    CHECK(weight == 8.0f);
    CHECK(demi::detail::rule_at_step(template_rule{0.25f}, 4).rate == 0.25f);
}
