// SPDX-License-Identifier: MIT
#include <demi/precision/float16.hpp>

#include <cstring>
#include <limits>
#include <support/catch.hpp>
#include <support/cpu.hpp>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace demi;

static_assert(sizeof(float16) == 2);
static_assert(std::is_trivially_copyable_v<float16>);
static_assert(std::is_trivially_default_constructible_v<float16>);
static_assert(std::is_standard_layout_v<float16>);
static_assert(std::is_convertible_v<float16, float>);
static_assert(!std::is_convertible_v<float, float16>);
static_assert(std::is_same_v<decltype(float16(1.0f) + float16(1.0f)), float>);

TEST_CASE("float16 holds the numbers of training") {
    CHECK(float16(1.0f).bits() == 0x3c00);
    CHECK(float16(-2.0).bits() == 0xc000);
    CHECK(float16(3).bits() == 0x4200);
    CHECK(float16(65504.0f).bits() == 0x7bff);
    CHECK(float16(65519.0f) == 65504.0f);
    CHECK(float16(65520.0f).bits() == 0x7c00);
    CHECK(float16(100000).bits() == 0x7c00);
    CHECK(float16(0x1p-24f).bits() == 1);
    CHECK(float16(0x1p-25f).bits() == 0);
    CHECK(float16(1e-8f).bits() == 0);
    CHECK(float16(255.0f * 255.0f) == 65024.0f);
    CHECK(float16(256.0f * 256.0f).bits() == 0x7c00);
}

TEST_CASE("float16 compares and computes in float") {
    const float16 one(1);
    const float16 small(0x1p-20f);
    CHECK(one + small == 1.0f + 0x1p-20f);
    CHECK(one == 1.0f);
    CHECK(float16(-0.0f) == float16(0.0f));
    CHECK(float16(-1) < one);
}

TEST_CASE("float16 limits are those of the format") {
    using limits = std::numeric_limits<float16>;
    CHECK(limits::max().bits() == 0x7bff);
    CHECK(limits::lowest().bits() == 0xfbff);
    CHECK(limits::min().bits() == 0x0400);
    CHECK(limits::denorm_min().bits() == 0x0001);
    CHECK(limits::epsilon() == 0x1p-10f);
    CHECK(limits::infinity().bits() == 0x7c00);
    CHECK(limits::quiet_NaN().bits() == 0x7e00);
    CHECK(limits::digits == 11);
    CHECK(limits::digits10 == 3);
    CHECK(limits::max_digits10 == 5);
    CHECK(limits::max_exponent == 16);
    CHECK(limits::min_exponent == -13);
    CHECK(limits::max_exponent10 == 4);
    CHECK(limits::min_exponent10 == -4);
    CHECK(limits::is_iec559);
}

#if defined(__x86_64__)
namespace {

[[gnu::target("avx,f16c")]] int differences_from_hardware() {
    int bad = 0;
    for (unsigned code = 0; code < 65536; ++code) {
        const auto bits = static_cast<unsigned short>(code);
        alignas(16) float expected[4];
        _mm_store_ps(expected, _mm_cvtph_ps(_mm_set1_epi16(static_cast<short>(bits))));
        const float actual = float16::from_bits(bits);
        bad += std::memcmp(&actual, expected, sizeof actual) != 0;
    }
    return bad;
}

}  // namespace

TEST_CASE("every float16 widens to the bits that F16C gives, NaN included") {
    if (!cpu_has_f16c()) {
        WARN("skipped: this CPU has no F16C");
        return;
    }
    CHECK(differences_from_hardware() == 0);
}
#endif
