// SPDX-License-Identifier: MIT
/// Runs code with another rounding mode and with subnormals flushed.
#pragma once

#include <cfenv>
#include <initializer_list>

#if defined(__SSE2__)
#include <pmmintrin.h>
#endif

/// Calls `fn` under each rounding mode, and again with FTZ and DAZ set where the CPU has them.
template <class Function>
void for_each_float_environment(Function fn) {
    for (const int mode : {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}) {
        std::fesetround(mode);
        fn();
#if defined(__SSE2__)
        const unsigned control = _mm_getcsr();
        _mm_setcsr(control | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
        fn();
        _mm_setcsr(control);
#endif
    }
    std::fesetround(FE_TONEAREST);
}
