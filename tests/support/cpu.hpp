// SPDX-License-Identifier: MIT
/// Which reference instructions the CPU has.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

/// Whether F16C works here. clang 14 does not know its name for `__builtin_cpu_supports`.
inline bool cpu_has_f16c() {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0 &&
           __builtin_cpu_supports("avx") != 0;
}
#endif
