// SPDX-License-Identifier: MIT
#include <demi/cuda/cuda_backend.cuh>
#include <demi/training/adamw.hpp>
#include <demi/training/optimizer.hpp>
#include <demi/training/sgd.hpp>

#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/reference_backend.hpp>
#include <vector>

namespace {

/// A list of tensors in a backend's memory.
template <class T, class Backend>
class tensors_of {
public:
    tensors_of(const Backend& where, const std::vector<std::size_t>& sizes) : where_(where) {
        for (const std::size_t size : sizes) {
            memory_.push_back(where.template make_buffer<T>(size));
            const std::span<T> elements(memory_.back().data(), size);
            list_.add(elements);
        }
    }

    const demi::tensor_list<T>& list() const { return list_; }

    void set(std::size_t tensor, const std::vector<T>& values) {
        where_.upload(values.data(), memory_[tensor].data(), values.size());
    }

private:
    Backend where_;
    std::vector<typename Backend::template buffer<T>> memory_;
    demi::tensor_list<T> list_;
};

template <class T, class Backend>
std::vector<T> values_of(const Backend& where, std::span<T> tensor) {
    std::vector<T> values(tensor.size());
    where.download(tensor.data(), values.data(), values.size());
    return values;
}

std::vector<demi::float16> random_values(std::mt19937& random, std::size_t count, float largest) {
    std::uniform_real_distribution<float> uniform(-largest, largest);
    std::vector<demi::float16> values(count);
    for (auto& value : values) value = demi::convert<demi::float16>(uniform(random));
    return values;
}

/// A small model under mixed_float16, trained with made-up gradients.
template <class Backend>
struct training {
    Backend where;
    std::vector<std::size_t> sizes;
    tensors_of<demi::float16, Backend> weights;
    tensors_of<demi::float16, Backend> gradients;
    demi::optimizer<demi::adamw, demi::mixed_float16, Backend> optimizer;
    demi::loss_scaler<Backend> scaler;

    training(const Backend& backend, const std::vector<std::size_t>& tensor_sizes)
        : where(backend),
          sizes(tensor_sizes),
          weights(where, sizes),
          gradients(where, sizes),
          optimizer(where, demi::adamw{.learning_rate = 0.01f}, started(weights.list())),
          scaler(where, demi::dynamic_loss_scale{.initial_scale = 1024, .growth_interval = 3}) {}

    const demi::tensor_list<demi::float16>& started(const demi::tensor_list<demi::float16>& list) {
        std::mt19937 random(1);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            weights.set(i, random_values(random, sizes[i], 1));
        }
        return list;
    }

    void make_gradients(unsigned step, bool overflow) {
        std::mt19937 random(100 + step);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            auto values = random_values(random, sizes[i], 8);
            if (overflow && i == 1) values.back() = demi::from_bits<demi::float16>(0xfc00);
            gradients.set(i, values);
        }
    }

    auto step() {
        return optimizer.step(gradients.list(), scaler, demi::clip_by_global_norm{1.0f});
    }
};

}  // namespace

TEST_CASE("steps on the device are those of the reference") {
    const demi::cuda_stream stream;
    const std::vector<std::size_t> sizes{1000, 37, 4099, 1, 20000};
    training<demi::cuda_backend> device(demi::cuda_backend(stream), sizes);
    training<reference_backend> reference(reference_backend(), sizes);
    for (unsigned step = 0; step < 6; ++step) {
        CAPTURE(step);
        device.make_gradients(step, step == 2);
        reference.make_gradients(step, step == 2);
        const demi::step_report found = device.step().get();
        const demi::step_report expected = reference.step().get();
        CHECK(found.reason == expected.reason);
        CHECK(found.first_non_finite == expected.first_non_finite);
        CHECK(found.infinity_count == expected.infinity_count);
        CHECK(found.next_loss_scale == expected.next_loss_scale);
        CHECK(std::fabs(found.clip_factor / expected.clip_factor - 1) < 0x1p-18f);
        if (expected.applied()) {
            CHECK(std::fabs(found.gradient_norm / expected.gradient_norm - 1) <
                  0x1p-19);  // as promised
        }
    }
    CHECK(device.optimizer.steps() == 5);
    std::size_t far = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const auto found = values_of(device.where, device.optimizer.master_weights()[i]);
        const auto expected = values_of(reference.where, reference.optimizer.master_weights()[i]);
        for (std::size_t j = 0; j < found.size(); ++j) {
            // One rounding of a weight of magnitude 1 for each step: the device contracts to fma.
            if (!(std::fabs(found[j] - expected[j]) <= 5 * 0x1p-24f)) ++far;
        }
        const auto copy = values_of(device.where, device.weights.list()[i]);
        for (std::size_t j = 0; j < found.size(); ++j) {
            if (copy[j].bits() != demi::convert<demi::float16>(found[j]).bits()) ++far;
        }
    }
    CHECK(far == 0);
}

TEST_CASE("a captured step gives the bits of an eager one") {
    const demi::cuda_stream stream;
    const std::vector<std::size_t> sizes{513, 1, 4096, 77};
    training<demi::cuda_backend> eager(demi::cuda_backend(stream), sizes);
    training<demi::cuda_backend> captured(demi::cuda_backend(stream), sizes);

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
    const auto report = captured.step();
    REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);

    for (unsigned step = 0; step < 5; ++step) {
        CAPTURE(step);
        eager.make_gradients(step, step == 1);
        captured.make_gradients(step, step == 1);
        REQUIRE(cudaGraphLaunch(replay, stream.get()) == cudaSuccess);
        const auto expected = eager.step().get();
        CHECK(same_bits(report.get().gradient_norm, expected.gradient_norm));
        CHECK(report.get().reason == expected.reason);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        CHECK(values_of(captured.where, captured.optimizer.master_weights()[i]) ==
              values_of(eager.where, eager.optimizer.master_weights()[i]));
    }
    CHECK(cudaGraphExecDestroy(replay) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

namespace {

/// Weights in bfloat16 alone, rounded stochastically. Products with a power of two are exact, so
/// that the device, which contracts to fma, has the bits of the host.
template <class Backend>
struct narrow_training {
    Backend where;
    tensors_of<demi::bfloat16, Backend> weights{where, {300, 5000}};
    tensors_of<demi::bfloat16, Backend> gradients{where, {300, 5000}};
    demi::optimizer<demi::sgd, demi::pure_bfloat16, Backend> optimizer{
        where, demi::sgd{.learning_rate = 0x1p-6f}, weights.list()};

    explicit narrow_training(const Backend& backend) : where(backend) {
        optimizer.set_rounding_seed(7);
    }

    void make_gradients(unsigned step) {
        std::mt19937 random(step);
        for (std::size_t i = 0; i < 2; ++i) {
            std::vector<demi::bfloat16> values(weights.list()[i].size());
            for (auto& value : values) {
                value = demi::convert<demi::bfloat16>(static_cast<float>(random() % 999) * 0.01f);
            }
            gradients.set(i, values);
        }
    }

    void step() { optimizer.step(gradients.list()); }
};

}  // namespace

TEST_CASE("stochastic rounding of weights follows the step count on the device") {
    const demi::cuda_stream stream;
    narrow_training<demi::cuda_backend> device{demi::cuda_backend(stream)};
    narrow_training<reference_backend> reference{reference_backend()};

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
    device.step();
    REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
    for (unsigned step = 0; step < 4; ++step) {
        device.make_gradients(step);
        reference.make_gradients(step);
        REQUIRE(cudaGraphLaunch(replay, stream.get()) == cudaSuccess);
        reference.step();
    }
    CHECK(device.optimizer.steps() == 4);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(same_bits(values_of(device.where, device.weights.list()[i]),
                        values_of(reference.where, reference.weights.list()[i])));
    }
    CHECK(cudaGraphExecDestroy(replay) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}
