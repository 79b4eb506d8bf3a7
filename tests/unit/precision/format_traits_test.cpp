// SPDX-License-Identifier: MIT
#include <demi/precision/convert.hpp>
#include <demi/precision/dtype.hpp>
#include <demi/precision/format_traits.hpp>
#include <demi/precision/policy.hpp>

#include <cstdint>
#include <limits>
#include <support/catch.hpp>

namespace {

/// What an engine's own half type looks like: bits, and nothing that demi knows.
struct engine_half {
    std::uint16_t code;
};

}  // namespace

template <>
struct demi::format_traits<engine_half> : demi::format_traits<demi::float16> {};

using namespace demi;

TEST_CASE("the facts of float and double are those of the standard library") {
    CHECK(format_traits<float>::max_finite ==
          static_cast<double>(std::numeric_limits<float>::max()));
    CHECK(format_traits<float>::min_normal ==
          static_cast<double>(std::numeric_limits<float>::min()));
    CHECK(format_traits<float>::min_subnormal == 0x1p-149);
    CHECK(format_traits<float>::epsilon ==
          static_cast<double>(std::numeric_limits<float>::epsilon()));
    CHECK(format_traits<double>::max_finite == std::numeric_limits<double>::max());
    CHECK(format_traits<double>::min_normal == std::numeric_limits<double>::min());
    CHECK(to_bits(format_traits<double>::min_subnormal) == 1);
    CHECK(format_traits<double>::epsilon == std::numeric_limits<double>::epsilon());
    CHECK(format_traits<float>::name == "float32");
    CHECK(format_traits<double>::name == "float64");
    CHECK(format_traits<double>::max_exponent == 1023);
    CHECK(format_traits<float>::min_exponent == -126);
}

TEST_CASE("the facts of the narrow formats are the published ones") {
    CHECK(format_traits<float16>::max_finite == 65504);
    CHECK(format_traits<float16>::min_normal == 0x1p-14);
    CHECK(format_traits<float16>::min_subnormal == 0x1p-24);
    CHECK(format_traits<bfloat16>::max_finite == 0x1.fep127);
    CHECK(format_traits<bfloat16>::min_normal == 0x1p-126);
    CHECK(format_traits<bfloat16>::min_subnormal == 0x1p-133);
    CHECK(format_traits<float8_e4m3>::max_finite == 448);
    CHECK(format_traits<float8_e4m3>::min_normal == 0x1p-6);
    CHECK(format_traits<float8_e4m3>::min_subnormal == 0x1p-9);
    CHECK_FALSE(format_traits<float8_e4m3>::has_infinity);
    CHECK(format_traits<float8_e4m3>::max_finite_bits == 0x7e);
    CHECK(format_traits<float8_e4m3>::quiet_nan_bits == 0x7f);
    CHECK(format_traits<float8_e5m2>::max_finite == 57344);
    CHECK(format_traits<float8_e5m2>::min_subnormal == 0x1p-16);
    CHECK(format_traits<float8_e5m2>::overflow_bits == 0x7c);
    CHECK(format_traits<float16>::name == "float16");
    CHECK(format_traits<bfloat16>::name == "bfloat16");
    CHECK(format_traits<float8_e4m3>::name == "float8_e4m3");
    CHECK(format_traits<float8_e5m2>::name == "float8_e5m2");
}

TEST_CASE("one line of inheritance makes a foreign type a format") {
    static_assert(floating_format<engine_half>);
    static_assert(floating_format<const engine_half>);
    static_assert(same_format<engine_half, float16>);
    static_assert(!same_format<engine_half, bfloat16>);
    static_assert(dtype_of<engine_half> == dtype::float16);
    static_assert(convert<engine_half>(1.5f).code == 0x3e00);
    static_assert(convert<float>(engine_half{0x3e00}) == 1.5f);
    static_assert(convert<bfloat16>(engine_half{0x3e00}) == 1.5f);
    static_assert(is_nan(engine_half{0x7c01}));

    struct policy {
        using compute_type = engine_half;
    };
    static_assert(precision_policy<policy>);
    static_assert(policy_traits<policy>::needs_loss_scale);
    CHECK(convert<engine_half>(65520.0, toward_zero{}).code == 0x7bff);
}

TEST_CASE("types without a format are none") {
    static_assert(!floating_format<int>);
    static_assert(!floating_format<std::uint16_t>);
    static_assert(!floating_format<float*>);
    static_assert(floating_format<const float>);
    SUCCEED();
}

TEST_CASE("bits go into a value and come out") {
    CHECK(to_bits(1.0f) == 0x3f800000u);
    CHECK(to_bits(-2.0) == 0xc000000000000000u);
    CHECK(from_bits<float>(0x40490fdb) == 3.14159274f);
    CHECK(from_bits<const float16>(0x3c00) == 1.0f);
    const bfloat16 constant = from_bits<bfloat16>(0x3f80);
    CHECK(to_bits(constant) == 0x3f80);
}
