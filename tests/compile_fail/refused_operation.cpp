// expect: is refused; for binary_cross_entropy use binary_cross_entropy_with_logits
// SPDX-License-Identifier: MIT
#include <demi/precision/op_category.hpp>

#if defined(DEMI_TEST_SHOULD_COMPILE)
using policy = demi::full_float32;
#else
using policy = demi::mixed_float16;
#endif

demi::precision_for<policy, demi::op::binary_cross_entropy> loss = 0;
