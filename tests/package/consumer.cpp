// SPDX-License-Identifier: MIT
/// What somebody writes on the first day: convert a number and look at it.
#include <demi/demi.hpp>

#include <cstdio>

int main() {
    const float value = 0.1f;
    const auto narrow = demi::convert<demi::float16>(value);
    std::printf("%g becomes %g in float16\n", static_cast<double>(value),
                static_cast<double>(demi::convert<float>(narrow)));
}
