// SPDX-License-Identifier: MIT
// Inputs that broke other libraries: shared names are repository#issue.
#include <demi/precision/convert.hpp>

#include <cstdint>
#include <support/catch.hpp>
#include <support/float_environment.hpp>

using namespace demi;

namespace {

std::uint16_t half(std::uint32_t float_bits) { return convert_bits<float16, float>(float_bits); }
std::uint16_t brain(std::uint32_t float_bits) { return convert_bits<bfloat16, float>(float_bits); }
std::uint32_t single(std::uint16_t half_bits) { return convert_bits<float, float16>(half_bits); }

}  // namespace

TEST_CASE("subnormal halves are not encoded as zero, low-payload NaN not as infinity") {
    // ROCm/rocm-libraries#11325
    CHECK(half(0x33800000) == 0x0001);
    CHECK(half(0x387fc000) == 0x03ff);
    CHECK(half(0xb3800000) == 0x8001);
    CHECK(half(0x7f800001) == 0x7e00);
    CHECK(half(0xff801fff) == 0xfe00);
}

TEST_CASE("values far below the smallest subnormal half become zero") {
    // microsoft/DirectXMath#104, #110
    CHECK(half(0x2edbe6ff) == 0x0000);  // 1e-10
    CHECK(half(0x00000001) == 0x0000);
    CHECK(half(0x80000001) == 0x8000);
    CHECK(half(0x387fe000) == 0x0400);  // a tie between the largest subnormal and the normal
}

TEST_CASE("bits shifted out of a subnormal result still decide the rounding") {
    // numpy/numpy#12845
    CHECK(half(0x33000001) == 0x0001);
    CHECK(half(0x33000000) == 0x0000);
    CHECK(half(0x32ffffff) == 0x0000);
}

TEST_CASE("flush-to-zero flags and rounding modes of the caller change nothing") {
    // KhronosGroup/OpenCL-CTS#182
    for_each_float_environment([] {
        CHECK(half(0x33c00000) == 0x0002);
        CHECK(half(0x33800000) == 0x0001);
        CHECK(single(0x0001) == 0x33800000);
        CHECK(brain(0x00010000) == 0x0001);
    });
}

TEST_CASE("subnormal halves widen to normal floats") {
    // dotnet/runtime#46536
    CHECK(single(0x0001) == 0x33800000);
    CHECK(single(0x03ff) == 0x387fc000);
    CHECK(single(0x8200) == 0xb8000000);
}

TEST_CASE("a rounding carry moves into the exponent") {
    // Nehanth/swarmllm#28
    CHECK(float16(-1.9999911f).bits() == 0xc000);
    CHECK(bfloat16(-1.9999911f).bits() == 0xc000);
    CHECK(float8_e4m3(-1.9999911f).bits() == 0xc0);
    CHECK(float8_e5m2(-1.9999911f).bits() == 0xc0);
    CHECK(half(0x387fffff) == 0x0400);
}

TEST_CASE("a signalling NaN does not become a bfloat16 infinity") {
    // dotnet/runtime#130583, gorse-io/gorse#1240
    CHECK(brain(0x7f800001) == 0x7fc0);
    CHECK(brain(0xff800001) == 0xffc0);
}

TEST_CASE("rounding does not carry a NaN into the sign") {
    // tile-ai/tilelang#2481
    for (const std::uint32_t bits : {0x7fff8c22u, 0x7fff8000u, 0x7fffffffu}) {
        CAPTURE(bits);
        CHECK(is_nan(bfloat16::from_bits(brain(bits))));
        CHECK(brain(bits) == 0x7fff);
        CHECK(is_nan(
            bfloat16::from_bits(convert_bits<bfloat16, float>(bits, stochastic_bits{0xffffffff}))));
    }
}

TEST_CASE("a bfloat16 NaN is not infinite") {
    // PaddlePaddle/Paddle#75807
    const auto nan = bfloat16::from_bits(0x7fc0);
    CHECK_FALSE(is_infinite(nan));
    CHECK(is_nan(nan));
    CHECK(is_infinite(bfloat16::from_bits(0xff80)));
    CHECK_FALSE(is_nan(bfloat16::from_bits(0xff80)));
}

TEST_CASE("bfloat16 subnormals are kept both ways") {
    // uxlfoundation/oneDNN#649, tensorflow/tensorflow#36514
    CHECK(convert_bits<float, bfloat16>(0x0001) == 0x00010000);
    CHECK(brain(0x00010000) == 0x0001);
    CHECK(brain(0x00008001) == 0x0001);
    CHECK(brain(0x00008000) == 0x0000);
}

TEST_CASE(
    "non-saturating float8 keeps the signs of overflow and NaN, and rounds before it decides") {
    // stillwater-sc/universal#1302, #1351
    CHECK(float8_e4m3(500.0f).bits() == 0x7f);
    CHECK(convert_bits<float8_e4m3, float>(0xff800000) == 0xff);
    CHECK(convert_bits<float8_e4m3, float>(0xffc00000) == 0xff);
    CHECK(convert_bits<float8_e4m3, float>(0x7f800000) == 0x7f);
    CHECK(float8_e5m2(58000.0f).bits() == 0x7b);
    CHECK(float8_e5m2(61439.0f).bits() == 0x7b);
    CHECK(float8_e5m2(61440.0f).bits() == 0x7c);
}

TEST_CASE("both overflow modes of E4M3 are there by name") {
    // jax-ml/ml_dtypes#400, #147; uxlfoundation/oneDNN#3675; ROCm/rocm-systems#8800
    const auto open = [](float value) { return convert<float8_e4m3>(value).bits(); };
    const auto closed = [](float value) {
        return convert<float8_e4m3>(value, nearest_even{}, overflow::saturate).bits();
    };
    CHECK(open(448.0f) == 0x7e);
    CHECK(open(464.0f) == 0x7e);
    CHECK(open(465.0f) == 0x7f);
    CHECK(open(1000.0f) == 0x7f);
    CHECK(convert_bits<float8_e4m3, float>(0x7f800000) == 0x7f);
    CHECK(closed(448.0f) == 0x7e);
    CHECK(closed(464.0f) == 0x7e);
    CHECK(closed(465.0f) == 0x7e);
    CHECK(closed(-1000.0f) == 0xfe);
    CHECK(convert_bits<float8_e4m3, float>(0x7f800000, nearest_even{}, overflow::saturate) == 0x7e);
    CHECK(convert_bits<float8_e4m3, float>(0x7fc00000, nearest_even{}, overflow::saturate) == 0x7f);
}

TEST_CASE("there is one rounding everywhere: nearest even") {
    // dmlc/mshadow PR 368
    CHECK(float(float16(1.0f + 3 * 0x1p-12f)) == 1.0f + 0x1p-10f);
    CHECK(float(float16(1.0f + 0x1p-11f)) == 1.0f);
    CHECK(float(float16(1.0f + 3 * 0x1p-11f)) == 1.0f + 0x1p-9f);
}

TEST_CASE("small gradients survive as subnormal halves") {
    // invergent-ai/surogate#162
    CHECK(float16(3e-5f).bits() == 0x01f7);
    CHECK(single(0x01f7) == 0x37fb8000);
}

TEST_CASE("tests for NaN and infinity hold under -ffast-math") {
    // AMReX-Codes/amrex#5667, 1bit-MONSTER#1277, opencv PR 23881. This file is also built that way.
    const auto holds = []<class T>(bits_of<T> infinity, bits_of<T> nan, bits_of<T> finite) {
        const volatile bits_of<T> hidden[] = {infinity, nan, finite};
        const T values[] = {from_bits<T>(hidden[0]), from_bits<T>(hidden[1]),
                            from_bits<T>(hidden[2])};
        return is_infinite(values[0]) && !is_nan(values[0]) && !is_finite(values[0]) &&
               is_nan(values[1]) && !is_infinite(values[1]) && !is_finite(values[1]) &&
               is_finite(values[2]) && !is_nan(values[2]) && !is_infinite(values[2]);
    };
    CHECK(holds.template operator()<float>(0x7f800000, 0xffc00000, 0x7f7fffff));
    CHECK(holds.template operator()<double>(0x7ff0000000000000, 0x7ff0000000000001, 1));
    CHECK(holds.template operator()<float16>(0xfc00, 0x7c01, 0xfbff));
    CHECK(holds.template operator()<bfloat16>(0x7f80, 0xff81, 0x8000));
    CHECK(holds.template operator()<float8_e5m2>(0x7c, 0xfd, 0x7b));
    CHECK(is_nan(float8_e4m3::from_bits(0xff)));
    CHECK_FALSE(is_infinite(float8_e4m3::from_bits(0x7f)));
    CHECK(is_finite(float8_e4m3::from_bits(0x7e)));
}

TEST_CASE("double rounds once, not first to float") {
    // Just above the tie between 1 and 1 + 2^-10: rounding to float first would land on the tie.
    CHECK(float16(1.0 + 0x1p-11 + 0x1p-40).bits() == 0x3c01);
    CHECK(float16(1.0 + 0x1p-11).bits() == 0x3c00);
    CHECK(float16(1.0 + 3 * 0x1p-11 - 0x1p-40).bits() == 0x3c01);
    CHECK(bfloat16(1.0 + 0x1p-8 + 0x1p-40).bits() == 0x3f81);
    CHECK(float8_e4m3(1.0 + 0x1p-4 + 0x1p-40).bits() == 0x39);
    CHECK(float8_e5m2(1.0 + 0x1p-3 + 0x1p-40).bits() == 0x3d);
    CHECK(float16(65520.0 - 0x1p-30).bits() == 0x7bff);
    CHECK(float16(0x1p-25 + 0x1p-70).bits() == 0x0001);
}
