// expect: gradients in this format underflow when unscaled in place
// SPDX-License-Identifier: MIT
#include <demi/host/host_backend.hpp>
#include <demi/scaling/loss_scaler.hpp>

#include <vector>

#if defined(DEMI_TEST_SHOULD_COMPILE)
std::vector<demi::bfloat16> gradients(3);
#else
std::vector<demi::float16> gradients(3);
#endif

void unscale(demi::loss_scaler<>& scaler) { scaler.unscale(gradients); }
