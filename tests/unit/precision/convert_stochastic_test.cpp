// SPDX-License-Identifier: MIT
#include "formats.hpp"
#include <demi/precision/convert.hpp>
#include <demi/precision/random_bits.hpp>

#include <cmath>
#include <cstdint>
#include <random>
#include <support/catch.hpp>

using namespace demi;

namespace {

/// `2^log2_draws` draws, equally spaced over all of them.
template <class To>
double mean_of_equal_draws(float value, int log2_draws) {
    double sum = 0;
    const std::uint64_t draws = std::uint64_t{1} << log2_draws;
    for (std::uint64_t i = 0; i < draws; ++i) {
        const stochastic_bits draw{static_cast<std::uint32_t>(i << (32 - log2_draws))};
        sum += static_cast<double>(float(convert<To>(value, draw)));
    }
    return sum / static_cast<double>(draws);
}

}  // namespace

TEMPLATE_TEST_CASE("stochastic rounding never moves a value that is representable", "",
                   DEMI_TEST_NARROW_FORMATS) {
    using format = format_traits<TestType>;
    int moved = 0;
    for (std::uint32_t code = 0; code < 1u << format::bits; ++code) {
        const auto bits = static_cast<bits_of<TestType>>(code);
        if (is_nan(TestType::from_bits(bits))) continue;
        const std::uint32_t value = convert_bits<float, TestType>(bits);
        const std::uint64_t wide = convert_bits<double, TestType>(bits);
        for (const std::uint32_t draw : {0u, 1u, 0x80000000u, 0xffffffffu}) {
            moved += convert_bits<TestType, float>(value, stochastic_bits{draw}) != bits;
            moved += convert_bits<TestType, double>(wide, stochastic_bits{draw}) != bits;
        }
    }
    CHECK(moved == 0);
}

TEMPLATE_TEST_CASE("the mean over equally spaced draws is the value itself", "",
                   DEMI_TEST_NARROW_FORMATS) {
    const auto& described = reference_of<TestType>;
    std::minstd_rand random(4);
    for (int i = 0; i < 20; ++i) {
        // Between two neighbours of any size, subnormals included; the fraction has 12 bits.
        const auto code = static_cast<std::uint64_t>(random() % described.max_finite());
        const double low = reference::decode(described, code);
        const double high = reference::decode(described, code + 1);
        const double fraction = std::ldexp(static_cast<double>(random() % 4096), -12);
        const double value = low + (high - low) * fraction;
        CAPTURE(code, fraction);
        CHECK(mean_of_equal_draws<TestType>(static_cast<float>(value), 12) == value);
        CHECK(mean_of_equal_draws<TestType>(static_cast<float>(-value), 12) == -value);
    }
}

TEST_CASE("every fraction of a bfloat16 is drawn exactly over all 16-bit draws") {
    for (const std::uint32_t dropped : {1u, 0x7fffu, 0x8000u, 0xabcdu, 0xffffu}) {
        const float value = from_bits<float>(0x3f800000u | dropped);
        CAPTURE(dropped);
        CHECK(mean_of_equal_draws<bfloat16>(value, 16) == static_cast<double>(value));
    }
    // A decrement of 2^-10 at weight 1 would be lost by rounding to nearest.
    CHECK(bfloat16(1.0f - 0x1p-10f) == 1.0f);
    CHECK(mean_of_equal_draws<bfloat16>(1.0f - 0x1p-10f, 16) == 1.0 - 0x1p-10);
}

TEST_CASE("values far below the smallest subnormal keep their probability, down to 2^-32 of it") {
    // 2^-24 times 2^-31: the two highest of 2^32 draws go up.
    CHECK(convert<float16>(0x1p-55f, stochastic_bits{0xffffffffu}).bits() == 1);
    CHECK(convert<float16>(0x1p-55f, stochastic_bits{0xfffffffeu}).bits() == 1);
    CHECK(convert<float16>(0x1p-55f, stochastic_bits{0xfffffffdu}).bits() == 0);
    CHECK(convert<float16>(0x1p-55, stochastic_bits{0xfffffffeu}).bits() == 1);
    CHECK(convert<float16>(0x1p-55, stochastic_bits{0xfffffffdu}).bits() == 0);
    CHECK(convert<float16>(0x1p-57f, stochastic_bits{0xffffffffu}).bits() == 0);
    CHECK(convert<float16>(0x1p-149f, stochastic_bits{0xffffffffu}).bits() == 0);
    CHECK(convert<float16>(0x1p-1000, stochastic_bits{0xffffffffu}).bits() == 0);
    CHECK(convert<float>(0x1p-1000, stochastic_bits{0xffffffffu}) == 0.0f);
}

TEST_CASE("between the largest value and the next step, the draw decides whether it overflows") {
    const float between = 65504.0f + 8.0f;  // a quarter of the step of 32
    CHECK(convert<float16>(between, stochastic_bits{0xc0000000u}).bits() == 0x7c00);
    CHECK(convert<float16>(between, stochastic_bits{0xbfffffffu}).bits() == 0x7bff);
    CHECK(convert<float16>(-between, stochastic_bits{0xffffffffu}).bits() == 0xfc00);
    CHECK(convert<float16>(between, stochastic_bits{0xffffffffu}, overflow::saturate).bits() ==
          0x7bff);
    CHECK(convert<float16>(65536.0f, stochastic_bits{0}).bits() == 0x7c00);
    CHECK(convert<float8_e4m3>(479.0f, stochastic_bits{0}).bits() == 0x7e);
    CHECK(convert<float8_e4m3>(479.0f, stochastic_bits{0xffffffffu}).bits() == 0x7f);
    CHECK(convert<float8_e4m3>(480.0f, stochastic_bits{0}).bits() == 0x7f);
}

TEST_CASE("double drops its excess with the same probability") {
    const double value = 1.0 + 0.375 * 0x1p-10;
    CHECK(convert<float16>(value, stochastic_bits{0xa0000000u}).bits() == 0x3c01);
    CHECK(convert<float16>(value, stochastic_bits{0x9fffffffu}).bits() == 0x3c00);
    CHECK(convert<bfloat16>(1.0 + 0.375 * 0x1p-7, stochastic_bits{0xa0000000u}).bits() == 0x3f81);
    CHECK(convert<float>(1.0 + 0.375 * 0x1p-23, stochastic_bits{0xa0000000u}) == 1.0f + 0x1p-23f);
    CHECK(convert<float>(1.0 + 0.375 * 0x1p-23, stochastic_bits{0x9fffffffu}) == 1.0f);
}

TEST_CASE("a million draws from the generator round up as often as they should") {
    const float value = 1.0f + 0.3f * 0x1p-7f;
    const double dropped = (static_cast<double>(value) - 1.0) * 0x1p7;
    const std::uint64_t key = random_key(1, 2, 3);
    int up = 0;
    for (std::uint64_t i = 0; i < 1'000'000; ++i) {
        up += convert<bfloat16>(value, stochastic_bits{random_bits(key, i)}) > 1.0f;
    }
    // Five standard deviations.
    CHECK(std::abs(up / 1e6 - dropped) < 5 * std::sqrt(dropped * (1 - dropped) / 1e6));
}
