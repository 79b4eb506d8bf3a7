// SPDX-License-Identifier: MIT
#include <demi/precision/bfloat16.hpp>

#include <limits>
#include <support/catch.hpp>
#include <type_traits>

using namespace demi;

static_assert(sizeof(bfloat16) == 2);
static_assert(std::is_trivially_copyable_v<bfloat16>);
static_assert(std::is_trivially_default_constructible_v<bfloat16>);
static_assert(std::is_standard_layout_v<bfloat16>);
static_assert(std::is_convertible_v<bfloat16, float>);
static_assert(!std::is_convertible_v<float, bfloat16>);

TEST_CASE("bfloat16 is the upper half of a float, rounded to nearest even") {
    CHECK(bfloat16(1.0f).bits() == 0x3f80);
    CHECK(bfloat16(-2.0).bits() == 0xc000);
    CHECK(bfloat16(257) == 256.0f);  // why sums of ones stall at 256
    CHECK(bfloat16(259) == 260.0f);
    CHECK(bfloat16(1.0f - 0x1p-9f) == 1.0f);  // a tie: goes to even
    CHECK(bfloat16(1.0f - 0x1p-8f) == 1.0f - 0x1p-8f);
    CHECK(bfloat16(3.3895314e38f).bits() == 0x7f7f);
    CHECK(bfloat16(std::numeric_limits<float>::max()).bits() == 0x7f80);
    CHECK(bfloat16(1e300).bits() == 0x7f80);
}

TEST_CASE("bfloat16 limits are those of the format") {
    using limits = std::numeric_limits<bfloat16>;
    CHECK(limits::max().bits() == 0x7f7f);
    CHECK(limits::lowest().bits() == 0xff7f);
    CHECK(limits::min().bits() == 0x0080);
    CHECK(limits::denorm_min().bits() == 0x0001);
    CHECK(limits::epsilon() == 0x1p-7f);
    CHECK(limits::infinity().bits() == 0x7f80);
    CHECK(limits::quiet_NaN().bits() == 0x7fc0);
    CHECK(limits::digits == 8);
    CHECK(limits::digits10 == 2);
    CHECK(limits::max_digits10 == 4);
    CHECK(limits::max_exponent == std::numeric_limits<float>::max_exponent);
    CHECK(limits::min_exponent == std::numeric_limits<float>::min_exponent);
    CHECK(limits::max_exponent10 == std::numeric_limits<float>::max_exponent10);
    CHECK(limits::min_exponent10 == std::numeric_limits<float>::min_exponent10);
}
