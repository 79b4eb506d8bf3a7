// SPDX-License-Identifier: MIT
#include <demi/scaling/loss_scale_rule.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <support/catch.hpp>
#include <support/message_of.hpp>

namespace rules_of_a_user {

/// A rule of the user's own: alternates between two scales after each bad step.
struct seesaw {
    struct state {
        float scale = 8.0f;
        friend constexpr bool operator==(const state&, const state&) = default;
    };

    constexpr state initial() const noexcept { return {}; }
    constexpr state next(const state& now, bool overflowed) const noexcept {
        return overflowed ? state{now.scale > 4.0f ? 4.0f : 8.0f} : now;
    }
    void validate() const {}
    void validate(const state&) const {}
};
static_assert(demi::loss_scale_rule<seesaw>);

struct without_initial : seesaw {
    void initial() const noexcept {}
};
static_assert(!demi::loss_scale_rule<without_initial>);

struct next_that_may_throw : seesaw {
    state next(const state& now, bool) const { return now; }
};
static_assert(!demi::loss_scale_rule<next_that_may_throw>);

struct without_validation {
    using state = seesaw::state;
    state initial() const noexcept { return {}; }
    state next(const state& now, bool) const noexcept { return now; }
};
static_assert(!demi::loss_scale_rule<without_validation>);

template <class State>
struct rule_with {
    using state = State;
    state initial() const noexcept { return {}; }
    state next(const state& now, bool) const noexcept { return now; }
    void validate() const {}
    void validate(const state&) const {}
};

struct double_state {
    double scale = 1.0;
    friend bool operator==(const double_state&, const double_state&) = default;
};
struct short_state {
    std::uint16_t scale = 0x3c00;
    friend bool operator==(const short_state&, const short_state&) = default;
};
struct text_state {
    float scale = 1.0f;
    std::string name;
    friend bool operator==(const text_state&, const text_state&) = default;
};
struct incomparable_state {
    float scale = 1.0f;
};

// S17: a scale in float16 cannot hold 2^16; the type of the scale is part of the concept.
static_assert(demi::loss_scale_rule<rule_with<seesaw::state>>);
static_assert(!demi::loss_scale_rule<rule_with<double_state>>);
static_assert(!demi::loss_scale_rule<rule_with<short_state>>);
static_assert(!demi::loss_scale_rule<rule_with<text_state>>);
static_assert(!demi::loss_scale_rule<rule_with<incomparable_state>>);
static_assert(!demi::loss_scale_rule<int>);

// The inverse of each bound is exact and a normal float.
static_assert(1.0f / demi::smallest_loss_scale == demi::largest_loss_scale);
static_assert(1.0f / demi::largest_loss_scale == demi::smallest_loss_scale);
static_assert(demi::smallest_loss_scale > std::numeric_limits<float>::min());

}  // namespace rules_of_a_user

namespace {

float from_bits(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

}  // namespace

TEST_CASE("a rule of the user's own satisfies the concept and runs") {
    const rules_of_a_user::seesaw rule;
    auto now = rule.initial();
    now = rule.next(now, true);
    CHECK(now.scale == 4.0f);
    now = rule.next(now, false);
    CHECK(now.scale == 4.0f);
    now = rule.next(now, true);
    CHECK(now.scale == 8.0f);
}

TEST_CASE("a range of positive numbers holds its ends and nothing else") {
    using demi::detail::is_within;
    CHECK(is_within(1.0f, 1.0f, 1.0f));
    CHECK(is_within(0.25f, 0.25f, 4.0f));
    CHECK(is_within(4.0f, 0.25f, 4.0f));
    CHECK_FALSE(is_within(from_bits(0x40800001u), 0.25f, 4.0f));
    CHECK_FALSE(is_within(from_bits(0x3e7fffffu), 0.25f, 4.0f));
    CHECK(is_within(2.0, 1.0 + 0x1p-23, 0x1p127));
    CHECK_FALSE(is_within(1.0, 1.0 + 0x1p-23, 0x1p127));
}

TEST_CASE("zero, subnormal, negative, infinite and NaN values are outside every range") {
    using demi::detail::is_within;
    const std::uint32_t refused[] = {
        0x00000000u, 0x80000000u,  // zeros
        0x00000001u, 0x007fffffu,  // subnormal
        0xbf800000u, 0xff7fffffu,  // negative
        0x7f800000u, 0xff800000u,  // infinite
        0x7f800001u, 0x7fc00000u, 0xffc00000u, 0x7fffffffu,
    };
    for (const std::uint32_t bits : refused) {
        CAPTURE(bits);
        CHECK_FALSE(is_within(from_bits(bits), std::numeric_limits<float>::min(),
                              std::numeric_limits<float>::max()));
    }
}

TEST_CASE("a refused scale is named together with what was expected") {
    const std::string text = message_of<demi::invalid_argument>(
        [] { demi::detail::require_scale("some rule", "floor", 0.0f, 0.5f, 2.0f); });
    CHECK(text == "some rule: floor is 0, expected a number from 0.5 to 2");
    const std::string nan = message_of<demi::invalid_argument>(
        [] { demi::detail::require_scale("some rule", "floor", from_bits(0x7fc00000u)); });
    CHECK(nan.find("floor is nan, expected a number from ") != std::string::npos);
    CHECK(message_of<demi::invalid_argument>(
              [] { demi::detail::require_scale("some rule", "floor", 1.0f); }) == "");
}
