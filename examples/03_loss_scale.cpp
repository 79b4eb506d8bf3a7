// SPDX-License-Identifier: MIT
// An engine with an optimizer of its own takes only the loss scaler: unscale, ask, update.
#include <demi/demi.hpp>

#include <iostream>
#include <limits>
#include <vector>

int main() {
    demi::host_backend backend;
    demi::loss_scaler scaler{backend,
                             demi::dynamic_loss_scale{.initial_scale = 1024, .growth_interval = 2}};
    std::vector<float> weights = {1.0f, 2.0f};

    for (int step = 1; step <= 6; ++step) {
        // The backward pass of d(loss)/dw = 0.5, seeded with the scaled loss.
        const float scale = scaler.scale();
        std::vector<float> gradients = {0.5f * scale, 0.5f * scale};
        if (step == 3) gradients[1] = std::numeric_limits<float>::infinity();

        scaler.unscale(gradients);
        if (scaler.step_is_safe()) {
            for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.1f * gradients[i];
        }
        std::cout << "step " << step << ' ' << scaler.update().get() << '\n';
    }
    std::cout << "weights " << weights[0] << ' ' << weights[1] << '\n';
}
