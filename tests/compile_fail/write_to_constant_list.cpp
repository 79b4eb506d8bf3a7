// expect: no matching function for call to
// SPDX-License-Identifier: MIT
/// A pass cannot write to a list of constant elements.
#include <demi/core/operand.hpp>

void use(const demi::tensor_list<const float>& list) {
#ifdef DEMI_TEST_SHOULD_COMPILE
    demi::in(list);
#else
    demi::out(list);
#endif
}
