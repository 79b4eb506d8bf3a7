// SPDX-License-Identifier: MIT
/// The rounding tags and which of them apply to lists.
#include <demi/core/rounding.hpp>

#include <support/catch.hpp>
#include <type_traits>

TEST_CASE("a list is rounded by tags that need no bits per element") {
    CHECK(demi::list_rounding<demi::nearest_even>);
    CHECK(demi::list_rounding<demi::toward_zero>);
    CHECK(demi::list_rounding<demi::stochastic>);
    CHECK_FALSE(demi::list_rounding<demi::stochastic_bits>);
    CHECK_FALSE(demi::list_rounding<demi::overflow>);
    CHECK_FALSE(demi::list_rounding<int>);
}

TEST_CASE("rounding tags can be handed to a device as they are") {
    CHECK(std::is_trivially_copyable_v<demi::nearest_even>);
    CHECK(std::is_trivially_copyable_v<demi::toward_zero>);
    CHECK(std::is_trivially_copyable_v<demi::stochastic>);
    CHECK(std::is_trivially_copyable_v<demi::stochastic_bits>);
}

TEST_CASE("stochastic rounding is named by seed and step, both zero by default") {
    constexpr demi::stochastic fresh;
    CHECK(fresh.seed == 0);
    CHECK(fresh.step == 0);
    constexpr demi::stochastic later{.seed = 7, .step = 3};
    CHECK(later.seed == 7);
    CHECK(later.step == 3);
    CHECK(demi::stochastic_bits{}.bits == 0);
}
