// expect: runs in the widest format of its arguments; name their types
// SPDX-License-Identifier: MIT
#include <demi/precision/op_category.hpp>

#if defined(DEMI_TEST_SHOULD_COMPILE)
demi::precision_for<demi::mixed_float16, demi::op::add, float, float> sum = 0;
#else
demi::precision_for<demi::mixed_float16, demi::op::add> sum = 0;
#endif
