// SPDX-License-Identifier: MIT
// The planner runs your training step at a few sizes, and answers with one that fitted.
#include <demi/demi.hpp>

#include <iostream>

// Stands for an engine: weights, and activations for every sample.
struct engine {
    demi::host_backend backend;
    demi::host_buffer<float> weights = backend.make_buffer<float>(20'000);

    void train_step(std::size_t samples) {
        auto activations = backend.make_buffer<float>(samples * 1'000);
        activations.data()[0] = weights.data()[0];
    }
};

int main() {
    demi::memory_meter meter;
    engine net{demi::host_backend({.memory = &meter})};
    demi::metered_budget probe{meter, std::size_t{1} << 20};

    const auto plan = demi::plan_batch(probe, {.global_batch = 512}, [&](demi::trial& trial) {
        net.train_step(trial.batch_size());
    });
    std::cout << plan;
    for (const auto& trial : plan.certificate.trials) {
        std::cout << "  " << demi::describe(trial) << '\n';
    }

    std::cout << "a short batch of 600 samples:";
    for (const auto micro : plan.split(600)) {
        std::cout << "  " << micro.size << " (weight " << micro.weight << ')';
    }
    std::cout << '\n';
}
