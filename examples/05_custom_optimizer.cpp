// SPDX-License-Identifier: MIT
// An optimizer of your own is a function of one parameter. This one is Lion (Chen et al., 2023).
#include <demi/demi.hpp>

#include <iostream>
#include <vector>

struct lion {
    float learning_rate = 0.05f;
    static constexpr std::size_t slots = 1;

    template <class Real>
    void operator()(Real gradient, Real& weight, Real& momentum) const {
        using demi::select;
        const Real direction = Real{0.9f} * momentum + Real{0.1f} * gradient;
        weight = weight - select(direction > Real{0.0f}, Real{learning_rate}, -learning_rate);
        momentum = Real{0.99f} * momentum + Real{0.01f} * gradient;
    }
};

int main() {
    demi::host_backend backend;  // find y = 2 x - 1 with float16 weights and gradients
    std::vector<demi::float16> line(2), gradients(2);
    demi::optimizer<lion, demi::mixed_float16> optimizer{backend, {}, line};
    demi::loss_scaler scaler{backend, demi::static_loss_scale{1024}};

    for (int step = 0; step <= 400; ++step) {
        if (step % 100 == 0) std::cout << "y = " << line[0] << " x + " << line[1] << '\n';
        float slope = 0, offset = 0;
        for (const float x : {-1.0f, 0.0f, 1.0f, 2.0f}) {
            const float error = line[0] * x + line[1] - (2 * x - 1);
            slope += scaler.scale() / 4 * error * x;
            offset += scaler.scale() / 4 * error;
        }
        gradients = {demi::float16(slope), demi::float16(offset)};
        optimizer.step(gradients, scaler);
        optimizer.rule().learning_rate *= 0.99f;
    }
}
