// SPDX-License-Identifier: MIT
#include <demi/cuda/device.hpp>

bool has_device() {
    try {
        demi::cuda_device::current();
        return true;
    } catch (const demi::cuda_error&) {
        return false;
    }
}
