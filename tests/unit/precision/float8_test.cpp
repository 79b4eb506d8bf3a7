// SPDX-License-Identifier: MIT
#include <demi/precision/float8.hpp>

#include <limits>
#include <support/catch.hpp>
#include <type_traits>

using namespace demi;

static_assert(sizeof(float8_e4m3) == 1 && sizeof(float8_e5m2) == 1);
static_assert(std::is_trivially_copyable_v<float8_e4m3>);
static_assert(std::is_trivially_default_constructible_v<float8_e5m2>);
static_assert(!std::is_convertible_v<float8_e5m2, float8_e4m3>);
static_assert(!std::is_convertible_v<float, float8_e4m3>);

TEST_CASE("E4M3 has the values of the OCP specification") {
    CHECK(float8_e4m3(448.0f).bits() == 0x7e);
    CHECK(float8_e4m3(1).bits() == 0x38);
    CHECK(float8_e4m3(0x1p-9f).bits() == 0x01);
    CHECK(float8_e4m3(0x1p-10f).bits() == 0x00);
    CHECK(float8_e4m3(3 * 0x1p-10f).bits() == 0x02);
    CHECK(float8_e4m3(0x1p-6f).bits() == 0x08);
    CHECK(float(float8_e4m3::from_bits(0x78)) == 256.0f);
    CHECK(is_nan(float8_e4m3::from_bits(0x7f)));
    CHECK(is_nan(float8_e4m3::from_bits(0xff)));
    CHECK(is_nan(float(float8_e4m3::from_bits(0xff))));
}

TEST_CASE("E5M2 has the values of the OCP specification") {
    CHECK(float8_e5m2(57344.0f).bits() == 0x7b);
    CHECK(float8_e5m2(1).bits() == 0x3c);
    CHECK(float8_e5m2(0x1p-16f).bits() == 0x01);
    CHECK(float8_e5m2(0x1p-17f).bits() == 0x00);
    CHECK(float8_e5m2(0x1p-14f).bits() == 0x04);
    CHECK(is_infinite(float(float8_e5m2::from_bits(0x7c))));
    CHECK(is_nan(float8_e5m2::from_bits(0x7d)));
    CHECK(is_nan(float8_e5m2::from_bits(0xff)));
}

TEST_CASE("one float8 becomes the other by way of its exact value") {
    CHECK(float8_e5m2(float8_e4m3(448.0f)) == 448.0f);
    CHECK(float8_e5m2(float8_e4m3(0x1p-9f)) == 0x1p-9f);
    CHECK(float8_e4m3(float8_e5m2(57344.0f)).bits() == 0x7f);
}

TEST_CASE("float8 limits are those of the formats") {
    using e4m3 = std::numeric_limits<float8_e4m3>;
    using e5m2 = std::numeric_limits<float8_e5m2>;
    CHECK(e4m3::max() == 448.0f);
    CHECK(e4m3::lowest() == -448.0f);
    CHECK(e4m3::min() == 0x1p-6f);
    CHECK(e4m3::denorm_min() == 0x1p-9f);
    CHECK(e4m3::epsilon() == 0.125f);
    CHECK_FALSE(e4m3::has_infinity);
    CHECK(e4m3::quiet_NaN().bits() == 0x7f);
    CHECK(e4m3::max_exponent == 9);
    CHECK(e4m3::min_exponent == -5);
    CHECK(e4m3::digits10 == 0);
    CHECK(e4m3::max_digits10 == 3);
    CHECK(e5m2::max() == 57344.0f);
    CHECK(e5m2::min() == 0x1p-14f);
    CHECK(e5m2::denorm_min() == 0x1p-16f);
    CHECK(e5m2::epsilon() == 0.25f);
    CHECK(e5m2::infinity().bits() == 0x7c);
    CHECK(e5m2::max_exponent == 16);
    CHECK(e5m2::max_digits10 == 2);
}
