// SPDX-License-Identifier: MIT
// What a number becomes in each format, and how a whole tensor is cast.
#include <demi/demi.hpp>

#include <iostream>
#include <vector>

template <class Format>
void show(float value) {
    const auto stored = demi::convert<Format>(value);
    std::cout << "  " << demi::format_traits<Format>::name << ": " << demi::convert<float>(stored)
              << '\n';
}

int main() {
    for (const float value : {0.1f, 70000.0f, 1e-8f}) {
        std::cout << value << " stored as\n";
        show<demi::float16>(value);
        show<demi::bfloat16>(value);
        show<demi::float8_e4m3>(value);
        show<demi::float8_e5m2>(value);
    }

    demi::host_backend backend;
    const std::vector<float> weights = {1.0f, 1.0f / 3, -2.5f};
    std::vector<demi::float16> half(weights.size());
    demi::cast(backend, weights, half);
    std::cout << "a tensor in float16:";
    for (const auto value : half) std::cout << ' ' << static_cast<float>(value);
    std::cout << '\n';
}
