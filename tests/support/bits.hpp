// SPDX-License-Identifier: MIT
/// Values as bits: equal when every bit is, NaN included.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

template <class T>
bool same_bits(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return same_bits(x, y); });
}
