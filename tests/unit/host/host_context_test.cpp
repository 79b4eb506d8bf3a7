// SPDX-License-Identifier: MIT
#include <demi/host/host_context.hpp>

#include <support/catch.hpp>
#include <type_traits>

TEST_CASE("a context is handed to kernels by value and owns nothing") {
    CHECK(std::is_trivially_copyable_v<demi::host_context>);
    CHECK(std::is_trivially_destructible_v<demi::host_context>);
}

TEST_CASE("a context that nobody filled in names no processor feature and no resource") {
    constexpr demi::host_context empty;
    CHECK(empty.isa == demi::host_isa::portable);
    CHECK(empty.executor == nullptr);
    CHECK(empty.memory == nullptr);
}
