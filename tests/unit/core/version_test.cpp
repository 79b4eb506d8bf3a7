// SPDX-License-Identifier: MIT
/// The version macros are numbers that preprocessor and code can compare.
#include <demi/core/version.hpp>

#include <support/catch.hpp>

#if DEMI_VERSION_MAJOR * 10000 + DEMI_VERSION_MINOR * 100 + DEMI_VERSION_PATCH < 1
#error "the version is usable in the preprocessor and above zero"
#endif

TEST_CASE("the version consists of small non-negative numbers") {
    constexpr int parts[] = {DEMI_VERSION_MAJOR, DEMI_VERSION_MINOR, DEMI_VERSION_PATCH};
    for (const int part : parts) {
        CAPTURE(part);
        CHECK(part >= 0);
        CHECK(part < 100);
    }
}
