// SPDX-License-Identifier: MIT
/// What the configuration macros mean in an ordinary host build.
#include <demi/core/config.hpp>

#include <string_view>
#include <support/catch.hpp>

namespace demi::inline DEMI_ABI {
struct made_in_config_test {};
}  // namespace demi::inline DEMI_ABI

#define TEXT_OF(name) #name
#define EXPANDED_TEXT_OF(name) TEXT_OF(name)

DEMI_HD constexpr int decorated(int value) { return value + 1; }

TEST_CASE("the ABI namespace carries the major and the minor version") {
    const std::string_view name = EXPANDED_TEXT_OF(DEMI_ABI);
    CHECK(name ==
          "v" EXPANDED_TEXT_OF(DEMI_VERSION_MAJOR) "_" EXPANDED_TEXT_OF(DEMI_VERSION_MINOR));
}

TEST_CASE("the ABI namespace is inline, so users never name it") {
    demi::made_in_config_test by_short_name;
    demi::DEMI_ABI::made_in_config_test& by_full_name = by_short_name;
    CHECK(&by_full_name == &by_short_name);
}

TEST_CASE("the host and device decoration leaves an ordinary function on the host") {
    static_assert(decorated(1) == 2);
    CHECK(decorated(1) == 2);
}

TEST_CASE("errors are thrown where the compiler has exceptions") { CHECK(DEMI_EXCEPTIONS == 1); }
