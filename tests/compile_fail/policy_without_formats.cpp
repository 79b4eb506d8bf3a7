// expect: a precision policy must name the format of at least one role
// SPDX-License-Identifier: MIT
#include <demi/precision/policy.hpp>

struct policy {
#if defined(DEMI_TEST_SHOULD_COMPILE)
    using compute_type = demi::bfloat16;
#endif
};

demi::policy_traits<policy>::param_type weight = 0;
