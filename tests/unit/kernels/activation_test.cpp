// SPDX-License-Identifier: MIT
#include <demi/kernels/activation.hpp>
#include <demi/precision/format_traits.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <support/catch.hpp>

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

float from_float_bits(std::uint32_t bits) { return demi::from_bits<float>(bits); }

/// Distance in units of the last place of the exact value.
double ulps(float value, double exact) {
    int exponent = 0;
    std::frexp(static_cast<float>(exact), &exponent);
    const double unit = std::ldexp(1.0, exponent - 24 < -149 ? -149 : exponent - 24);
    return std::fabs(static_cast<double>(value) - exact) / unit;
}

double exact_gelu(double x) {
    const double pi = std::acos(-1.0);
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
}

}  // namespace

TEST_CASE("tanh is within 6 ulp and inside [-1, 1]") {
    double worst = 0;
    int outside = 0;
    int odd = 0;
    for (std::uint32_t bits = 0; bits < 0x7f800000; bits += 997) {
        const float x = from_float_bits(bits);
        const float y = demi::tanh(x);
        worst = std::fmax(worst, ulps(y, std::tanh(static_cast<double>(x))));
        if (!(y >= 0 && y <= 1)) ++outside;
        if (demi::tanh(-x) != -y) ++odd;
    }
    CHECK(worst < 6);
    CHECK(outside == 0);
    CHECK(odd == 0);
}

TEST_CASE("tanh keeps NaN, signed zero and subnormals, and ends at 1") {
    CHECK(demi::is_nan(demi::tanh(not_a_number)));
    CHECK(demi::to_bits(demi::tanh(-0.0f)) == 0x80000000);
    CHECK(demi::tanh(0x1p-149f) == 0x1p-149f);
    CHECK(demi::tanh(infinity) == 1.0f);
    CHECK(demi::tanh(-infinity) == -1.0f);
    CHECK(demi::tanh(10.0f) == 1.0f);
    CHECK(demi::tanh(0.5) == std::tanh(0.5));
}

TEST_CASE("relu lets NaN through") {
    CHECK(demi::relu{}(2.0f) == 2.0f);
    CHECK(demi::relu{}(-2.0f) == 0.0f);
    CHECK(demi::relu{}(-infinity) == 0.0f);
    CHECK(demi::is_nan(demi::relu{}(not_a_number)));
    CHECK(demi::relu::derivative(3.0f) == 1.0f);
    CHECK(demi::relu::derivative(0.0f) == 0.0f);
    CHECK(demi::relu::derivative(-3.0f) == 0.0f);
    CHECK(demi::is_nan(demi::relu::derivative(not_a_number)));
}

TEST_CASE("gelu is the tanh form within float rounding") {
    double worst = 0;
    double worst_derivative = 0;
    for (int i = -160000; i <= 160000; ++i) {
        const float x = static_cast<float>(i) * 0x1p-13f;
        const double wide = static_cast<double>(x);
        const double step = 1e-4;
        const double slope = (exact_gelu(wide + step) - exact_gelu(wide - step)) / (2 * step);
        worst =
            std::fmax(worst, std::fabs(static_cast<double>(demi::gelu{}(x)) - exact_gelu(wide)) /
                                 std::fmax(1.0, std::fabs(wide)));
        worst_derivative = std::fmax(
            worst_derivative, std::fabs(static_cast<double>(demi::gelu::derivative(x)) - slope));
    }
    CHECK(worst < 4e-7);
    CHECK(worst_derivative < 5e-6);
}

TEST_CASE("gelu and its derivative are finite for every finite input, and NaN for NaN") {
    int wrong = 0;
    for (std::uint32_t bits = 0; bits < 0x7f800000; bits += 65537) {
        for (const float x : {from_float_bits(bits), -from_float_bits(bits)}) {
            if (!demi::is_finite(demi::gelu{}(x))) ++wrong;
            if (!demi::is_finite(demi::gelu::derivative(x))) ++wrong;
        }
    }
    CHECK(wrong == 0);
    CHECK(demi::gelu{}(1e30f) == 1e30f);
    CHECK(demi::gelu{}(-1e30f) == 0.0f);
    CHECK(demi::gelu{}(infinity) == infinity);
    CHECK(demi::gelu{}(-infinity) == 0.0f);
    CHECK(demi::gelu::derivative(1e30f) == 1.0f);
    CHECK(demi::gelu::derivative(-infinity) == 0.0f);
    CHECK(demi::is_nan(demi::gelu{}(not_a_number)));
    CHECK(demi::is_nan(demi::gelu::derivative(not_a_number)));
}
