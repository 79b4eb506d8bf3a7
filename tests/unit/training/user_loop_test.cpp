// SPDX-License-Identifier: MIT
/// The loops of a user's engine, whose types know nothing of demi.
#include <demi/demi.hpp>
#include <demi/precision/interop_eigen.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <new>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <vector>

#if DEMI_TEST_HAS_EIGEN
#include <Eigen/Core>
#endif

namespace engine {

struct sample {
    float features[3];
    float target;
};

using batch = std::vector<sample>;

/// Batches of a linear function of three features; the last one is short.
inline std::vector<batch> make_data(std::size_t batches) {
    std::mt19937_64 random(8);
    std::vector<batch> data(batches);
    for (auto& samples : data) {
        samples.resize(&samples == &data.back() ? 13 : 32);
        for (sample& one : samples) {
            for (float& feature : one.features) {
                feature = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
            }
            one.target = 0.5f * one.features[0] - 0.25f * one.features[1] + one.features[2] + 0.75f;
        }
    }
    return data;
}

/// Memory of a device that is always nearly full, as the engine counts it.
class arena {
public:
    void take(std::size_t bytes) {
        if (bytes > free_bytes()) throw std::bad_alloc();
        peak_ = bytes > peak_ ? bytes : peak_;
    }
    std::size_t free_bytes() const { return total_bytes(); }
    std::size_t total_bytes() const { return 4096; }
    void reset_peak() { peak_ = 0; }
    std::size_t peak_bytes() const { return peak_; }

private:
    std::size_t peak_ = 0;
};

/// Linear regression on vectors of any number type that converts to float and back.
template <class Number>
class vector_net {
public:
    explicit vector_net(arena& memory) : memory_(memory) {}

    std::vector<std::vector<Number>*> parameters() { return {&weights_, &bias_}; }
    std::vector<std::vector<Number>*> gradients() { return {&weight_gradients_, &bias_gradients_}; }

    void clear_gradients() {
        weight_gradients_.assign(3, Number(0.0f));
        bias_gradients_.assign(1, Number(0.0f));
    }

    void train_step(std::size_t samples) { memory_.take(samples * 200); }

    /// Adds the gradient of the mean squared error, times a factor.
    void backward(std::span<const sample> samples, float factor) {
        for (const sample& one : samples) {
            const float share = factor * error(one) / static_cast<float>(samples.size());
            for (std::size_t i = 0; i < 3; ++i) add(weight_gradients_[i], share * one.features[i]);
            add(bias_gradients_[0], share);
        }
    }

    float loss(const std::vector<batch>& data) const {
        float sum = 0, count = 0;
        for (const batch& samples : data) {
            for (const sample& one : samples) {
                sum += error(one) * error(one) / 2;
                ++count;
            }
        }
        return sum / count;
    }

private:
    float error(const sample& one) const {
        float output = static_cast<float>(bias_[0]);
        for (std::size_t i = 0; i < 3; ++i) {
            output += static_cast<float>(weights_[i]) * one.features[i];
        }
        return output - one.target;
    }
    static void add(Number& sum, float value) { sum = Number(static_cast<float>(sum) + value); }

    arena& memory_;
    std::vector<Number> weights_ = std::vector<Number>(3, Number(0.0f));
    std::vector<Number> bias_ = std::vector<Number>(1, Number(0.0f));
    std::vector<Number> weight_gradients_ = weights_;
    std::vector<Number> bias_gradients_ = bias_;
};

#if DEMI_TEST_HAS_EIGEN
/// The same on Eigen's matrices.
template <class Number>
class eigen_net {
    using vector = Eigen::Matrix<Number, Eigen::Dynamic, 1>;

public:
    explicit eigen_net(arena& memory) : memory_(memory) {}

    std::vector<vector*> parameters() { return {&weights_, &bias_}; }
    std::vector<vector*> gradients() { return {&weight_gradients_, &bias_gradients_}; }
    void clear_gradients() {
        weight_gradients_.setZero();
        bias_gradients_.setZero();
    }
    void train_step(std::size_t samples) { memory_.take(samples * 200); }

    void backward(std::span<const sample> samples, float factor) {
        Eigen::VectorXf weights = Eigen::VectorXf::Zero(3), bias = Eigen::VectorXf::Zero(1);
        for (const sample& one : samples) {
            const float share = factor * error(one) / static_cast<float>(samples.size());
            weights += share * Eigen::Map<const Eigen::Vector3f>(one.features);
            bias[0] += share;
        }
        weight_gradients_ += weights.cast<Number>();
        bias_gradients_ += bias.cast<Number>();
    }

    float loss(const std::vector<batch>& data) const {
        float sum = 0, count = 0;
        for (const batch& samples : data) {
            for (const sample& one : samples) {
                sum += error(one) * error(one) / 2;
                ++count;
            }
        }
        return sum / count;
    }

private:
    float error(const sample& one) const {
        const Eigen::Vector3f weights = weights_.template cast<float>();
        return weights.dot(Eigen::Map<const Eigen::Vector3f>(one.features)) +
               static_cast<float>(bias_[0]) - one.target;
    }

    arena& memory_;
    vector weights_ = vector::Zero(3);
    vector bias_ = vector::Zero(1);
    vector weight_gradients_ = vector::Zero(3);
    vector bias_gradients_ = vector::Zero(1);
};
#endif

/// Keeps every line, and when it would write.
class log {
public:
    bool due() { return ++calls_ % 2 == 1; }
    template <class Line>
    void write(const Line& line) {
        text_ << line << '\n';
    }
    std::string text() const { return text_.str(); }

private:
    int calls_ = 0;
    std::ostringstream text_;
};

}  // namespace engine

namespace {

/// The loop of the design, as a user writes it; `plan` says what it found.
template <class policy, class Net>
demi::batch_plan train(Net& net, const std::vector<engine::batch>& data, engine::arena& probe,
                       engine::log& log, int epochs) {
    demi::host_backend backend;
    demi::optimizer<demi::adamw, policy> optimizer{
        backend, {.learning_rate = 2e-2f, .weight_decay = 0.0f}, net.parameters()};
    demi::loss_scaler scaler{backend, demi::dynamic_loss_scale{}};

    const auto plan = demi::plan_batch(probe, {.global_batch = 32}, [&](demi::trial& trial) {
        net.train_step(trial.batch_size());
    });

    for (int epoch = 0; epoch < epochs; ++epoch) {
        for (auto& batch : data) {
            net.clear_gradients();
            for (auto micro : plan.split(batch)) {
                net.backward(micro.of(batch), scaler.scale(micro.weight));
            }
            const auto outcome =
                optimizer.step(net.gradients(), scaler, demi::clip_by_global_norm{1.0f});
            if (log.due()) log.write(outcome.get());
        }
    }
    return plan;
}

/// Trains with one poisoned batch among the good ones.
template <class policy, class Net>
void check_training(float largest_loss) {
    engine::arena memory;
    Net net(memory);
    engine::log log;
    auto data = engine::make_data(41);
    auto poisoned = data;
    poisoned[20][7].target = std::numeric_limits<float>::quiet_NaN();

    const float before = net.loss(data);
    const auto plan = train<policy>(net, poisoned, memory, log, 12);
    CHECK(before > 0.3f);
    CHECK(net.loss(data) < largest_loss);
    CHECK(plan.micro_batch == 16);
    CHECK(plan.peak == 16 * 200);
    CHECK(mentions(log.text(), {"applied: gradient norm", "skipped: gradient tensor", "is NaN"}));
}

/// An engine with an optimizer of its own, of which the loop takes nothing else.
template <class Vector>
class self_made {
public:
    explicit self_made(const Vector& start) : weights_(start), gradients_(start) {}

    std::vector<Vector*> gradients() { return {&gradients_}; }
    void optimizer_step() {
        for (int i = 0; i < 4; ++i) weights_[at(i)] -= 0.5f * gradients_[at(i)];
        ++steps_;
    }
    void backward(float loss_scale) {
        for (int i = 0; i < 4; ++i) gradients_[at(i)] = (weights_[at(i)] - 3.0f) * loss_scale;
    }
    Vector& gradient_vector() { return gradients_; }
    float weight(int i) const { return weights_[at(i)]; }
    int steps() const { return steps_; }

private:
    using index = decltype(std::declval<const Vector&>().size());
    static index at(int i) { return static_cast<index>(i); }

    Vector weights_;
    Vector gradients_;
    int steps_ = 0;
};

template <class Vector>
void check_scaler_only(const Vector& start) {
    self_made<Vector> engine(start);
    const demi::host_backend backend;
    demi::loss_scaler scaler{backend};
    for (int step = 0; step < 20; ++step) {
        engine.backward(scaler.scale());
        if (step == 5) engine.gradient_vector()[2] = std::numeric_limits<float>::infinity();
        scaler.unscale(engine.gradients());
        if (scaler.step_is_safe()) engine.optimizer_step();
        scaler.update();
    }
    CHECK(engine.steps() == 19);
    CHECK(scaler.scale() == 32768.0f);
    for (int i = 0; i < 4; ++i) CHECK(std::fabs(engine.weight(i) - 3.0f) < 1e-4f);
}

}  // namespace

TEST_CASE("the loop of the design trains an engine of vectors under every policy") {
    check_training<demi::full_float32, engine::vector_net<float>>(1e-5f);
    check_training<demi::mixed_float16, engine::vector_net<demi::float16>>(1e-4f);
    check_training<demi::mixed_bfloat16, engine::vector_net<demi::bfloat16>>(1e-3f);
}

TEST_CASE("an engine with its own optimizer takes only the scaler") {
    check_scaler_only(std::vector<float>(4, 1.0f));
}

#if DEMI_TEST_HAS_EIGEN
namespace {

struct eigen_half {
    using compute_type = Eigen::half;
};

struct eigen_bfloat16 {
    using compute_type = Eigen::bfloat16;
};

}  // namespace

static_assert(demi::policy_traits<eigen_half>::needs_loss_scale);
static_assert(demi::tensor<Eigen::Matrix<Eigen::half, Eigen::Dynamic, Eigen::Dynamic>>);

TEST_CASE("the same loop trains an engine of Eigen matrices") {
    check_training<demi::full_float32, engine::eigen_net<float>>(1e-5f);
    check_training<eigen_half, engine::eigen_net<Eigen::half>>(1e-4f);
    check_training<eigen_bfloat16, engine::eigen_net<Eigen::bfloat16>>(1e-3f);
}

TEST_CASE("an Eigen engine with its own optimizer takes only the scaler") {
    const Eigen::VectorXf start = Eigen::VectorXf::Ones(4);
    check_scaler_only(start);
}

TEST_CASE("Eigen's arrays, matrices and maps go straight into passes") {
    demi::host_backend backend;
    Eigen::MatrixXf weights = Eigen::MatrixXf::Constant(3, 5, 1.5f);
    Eigen::Matrix<Eigen::half, 3, 5> copy;
    demi::cast(backend, weights, copy);
    CHECK(static_cast<float>(copy(2, 4)) == 1.5f);
    std::vector<float> memory(6, 2.0f);
    Eigen::Map<Eigen::VectorXf> map(memory.data(), 6);
    CHECK(demi::measure_gradients(backend, map).sum_of_squares == 24.0);
}
#endif
