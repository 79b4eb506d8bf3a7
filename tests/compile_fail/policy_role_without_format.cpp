// expect: a role of this precision policy is not a floating-point format
// SPDX-License-Identifier: MIT
#include <demi/precision/policy.hpp>

struct policy {
#if defined(DEMI_TEST_SHOULD_COMPILE)
    using gradient_type = demi::bfloat16;
#else
    using gradient_type = short;
#endif
};

demi::policy_traits<policy>::param_type weight = 0;
