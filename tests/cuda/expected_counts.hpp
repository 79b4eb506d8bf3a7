// SPDX-License-Identifier: MIT
/// The bounds of what an emulator counts, in lines that check_traffic.cmake compares with it:
/// "<part of a kernel's name> <counter> <least> <most>".
#pragma once

#include <cstdint>
#include <cstdio>

inline void expect(const char* kernel, const char* counter, std::uint64_t least,
                   std::uint64_t most) {
    std::printf("%s %s %llu %llu\n", kernel, counter, static_cast<unsigned long long>(least),
                static_cast<unsigned long long>(most));
}

inline void expect(const char* kernel, const char* counter, std::uint64_t value) {
    expect(kernel, counter, value, value);
}

/// Of all kernels.
inline void expect_no_hidden_cost(std::uint64_t atomics = 0) {
    expect("kernel", "local_bytes", 0);
    expect("kernel", "atomics", atomics);
    expect("kernel", "bank_conflicts", 0);
}
