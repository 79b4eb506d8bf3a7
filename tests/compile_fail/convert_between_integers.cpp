// expect: floating_format
// SPDX-License-Identifier: MIT
#include <demi/precision/convert.hpp>

#if defined(DEMI_TEST_SHOULD_COMPILE)
auto half = demi::convert<demi::float16>(3.0f);
#else
auto half = demi::convert<demi::float16>(3);
#endif
