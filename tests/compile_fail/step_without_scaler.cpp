// expect: this policy loses small gradients without a loss scale: pass a loss_scaler
// SPDX-License-Identifier: MIT
#include <demi/host/host_backend.hpp>
#include <demi/training/optimizer.hpp>
#include <demi/training/sgd.hpp>

#include <vector>

#if defined(DEMI_TEST_SHOULD_COMPILE)
using policy = demi::mixed_bfloat16;
#else
using policy = demi::mixed_float16;
#endif

void step(demi::optimizer<demi::sgd, policy>& optimizer, std::vector<float>& gradients) {
    optimizer.step(gradients);
}
