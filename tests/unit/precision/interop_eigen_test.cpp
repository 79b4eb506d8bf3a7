// SPDX-License-Identifier: MIT
#include <demi/precision/interop_eigen.hpp>

#if DEMI_TEST_HAS_EIGEN
#include <demi/precision/convert.hpp>

#include <Eigen/Core>

#include <cstdint>
#include <support/catch.hpp>

using namespace demi;

TEST_CASE("Eigen::half is a float16 and Eigen::bfloat16 a bfloat16") {
    static_assert(floating_format<Eigen::half> && floating_format<Eigen::bfloat16>);
    static_assert(same_format<Eigen::half, float16>);
    static_assert(same_format<Eigen::bfloat16, bfloat16>);
    CHECK(convert<float16>(Eigen::half(1.5f)).bits() == 0x3e00);
    CHECK(convert<Eigen::half>(65520.0f, nearest_even{}, overflow::saturate).x == 0x7bff);
    CHECK(convert<Eigen::bfloat16>(Eigen::half(1.5f)).value == 0x3fc0);
    CHECK_FALSE(is_finite(convert<Eigen::half>(1e6f)));
}

TEST_CASE("Eigen and demi read every number of the two formats the same way") {
    int bad = 0;
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const auto bits = static_cast<std::uint16_t>(code);
        const auto half = from_bits<Eigen::half>(bits);
        if (is_finite(half)) bad += static_cast<float>(half) != convert<float>(half);
        const auto brain = from_bits<Eigen::bfloat16>(bits);
        if (is_finite(brain)) bad += static_cast<float>(brain) != convert<float>(brain);
    }
    CHECK(bad == 0);
}
#endif
