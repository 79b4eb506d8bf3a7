// SPDX-License-Identifier: MIT
#include <demi/precision/convert.hpp>
#include <demi/precision/interop_native.hpp>

#include <cstdint>
#include <support/catch.hpp>

using namespace demi;

#if defined(__FLT16_MANT_DIG__)
__extension__ typedef _Float16 native_half;

TEST_CASE("the compiler's _Float16 is a float16") {
    static_assert(floating_format<native_half>);
    static_assert(same_format<native_half, float16>);
    static_assert(convert<float>(native_half(1.5f)) == 1.5f);
    int bad = 0;
    for (std::uint32_t code = 0; code < 0x7c00; ++code) {
        const auto bits = static_cast<std::uint16_t>(code);
        const native_half value = from_bits<native_half>(bits);
        bad += static_cast<float>(value) != convert<float>(value);
        bad += to_bits(static_cast<native_half>(convert<float>(value))) != bits;
    }
    CHECK(bad == 0);
}
#endif

#if defined(__BFLT16_MANT_DIG__)
TEST_CASE("the compiler's __bf16 is a bfloat16") {
    static_assert(same_format<__bf16, bfloat16>);
    static_assert(convert<float>(static_cast<__bf16>(1.5f)) == 1.5f);
    CHECK(to_bits(convert<__bf16>(257.0f)) == 0x4380);
}
#endif

#if defined(__STDCPP_FLOAT16_T__)
static_assert(same_format<std::float16_t, float16>);
#endif
#if defined(__STDCPP_BFLOAT16_T__)
static_assert(same_format<std::bfloat16_t, bfloat16>);
#endif
