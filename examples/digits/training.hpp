// SPDX-License-Identifier: MIT
/// The training itself, on any backend: read `train` first, that is the loop an engine would have.
#pragma once

#include "../nn/digits.hpp"
#include "../nn/image_loader.hpp"
#include "../nn/mlp.hpp"
#include "options.hpp"
#include "results.hpp"
#include "terminal.hpp"
#include <demi/batching/plan_batch.hpp>
#include <demi/profiling/memory_meter.hpp>
#include <demi/training/adamw.hpp>
#include <demi/training/optimizer.hpp>

#include <chrono>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace digits_demo {

inline const std::vector<std::size_t> network_widths = {nn::digits::pixels, 128, 128,
                                                        nn::digits::classes};

/// Adam does not care how small gradients are, as long as epsilon is smaller.
inline const demi::adamw update_rule = {.learning_rate = 3e-3f, .epsilon = 1e-15f};

/// One training run: a network, its optimizer and its loss scaler, all in metered memory.
template <class Backend, class Policy, class ScaleRule>
class training {
public:
    using network = nn::mlp<Policy, Backend>;
    using loader = nn::image_loader<typename network::compute_type>;

    training(const Backend& where, const ScaleRule& rule, const options& chosen, std::uint64_t seed)
        : backend_{where},
          net_{backend_, network_widths, seed},
          optimizer_{backend_, update_rule, net_.parameters()},
          scaler_{backend_, rule},
          chosen_(chosen),
          random_(seed) {}

    /// One epoch; returns the mean loss.
    double train(loader& data, const demi::batch_plan& plan, std::vector<step_record>& steps) {
        data.shuffle(random_);
        for (std::size_t first = 0; first < data.size(); first += chosen_.batch) {
            const std::size_t size = std::min(chosen_.batch, data.size() - first);
            net_.zero_gradients();
            for (const auto micro : plan.split(size)) {
                net_.backward(data.images(first + micro.first, micro.size),
                              scaler_.scale(micro.weight * loss_weight(size)));
            }
            const auto outcome =
                optimizer_.step(net_.gradients(), scaler_, demi::clip_by_global_norm{1.0f});
            const demi::step_report report = outcome.get();
            steps.push_back({report.loss_scale, !report.applied()});
        }
        return net_.take_loss_sum() / static_cast<double>(data.size());
    }

    /// The same memory as in a step of `train`, for the batch planner: with blank images.
    void rehearse(std::size_t images) {
        const std::vector<typename network::compute_type> pixels(images * nn::digits::pixels);
        const std::vector<std::uint8_t> labels(images);
        net_.release_activations();
        net_.zero_gradients();
        net_.backward({pixels, labels}, scaler_.scale(loss_weight(images)));
        optimizer_.step(net_.gradients(), scaler_, demi::clip_by_global_norm{1.0f});
        net_.release_activations();
    }

    double accuracy(loader& data, std::size_t images_per_pass) {
        return nn::accuracy(net_, data, images_per_pass);
    }

    /// Counts the magnitudes of the gradients that the last micro-batch left.
    void count_magnitudes(policy_result& result) {
        count(net_.activation_gradients(), result.activation_gradients);
        count(net_.gradients(), result.weight_gradients);
    }

    std::size_t parameter_count() { return net_.parameters().element_count(); }
    float loss_scale() const { return scaler_.scale(); }

private:
    /// What turns the mean over some images into their part of a mean over `mean_over` of them.
    float loss_weight(std::size_t images) const {
        return static_cast<float>(static_cast<double>(images) /
                                  static_cast<double>(chosen_.mean_over));
    }

    template <class T>
    void count(const demi::tensor_list<T>& tensors, magnitude_histogram& into) {
        for (const auto tensor : tensors) {
            std::vector<T> values(tensor.size());
            backend_.download(tensor.data(), values.data(), values.size());
            for (const auto value : values) into.add(value);
        }
    }

    Backend backend_;
    network net_;
    demi::optimizer<demi::adamw, Policy, Backend> optimizer_;
    demi::loss_scaler<Backend, ScaleRule> scaler_;
    const options& chosen_;
    std::mt19937_64 random_;
};

/// Plans in the budget, then trains once for every seed.
///
/// `Place` is where the work runs: it has the `upstream` memory that a meter counts, and makes a
/// `backend` whose memory comes through the meter.
template <class Policy, class Place, class ScaleRule>
policy_result compare_policy(const std::string& name, Place& place, const ScaleRule& rule,
                             const nn::digits_split& digits, const options& chosen,
                             progress_bar& progress) {
    using run =
        training<decltype(place.backend(std::declval<demi::memory_meter&>())), Policy, ScaleRule>;
    policy_result result;
    result.name = name;

    demi::memory_meter meter{{.upstream = place.upstream()}};
    const auto backend = place.backend(meter);
    demi::metered_budget probe{meter, chosen.budget};
    demi::batch_plan plan;
    {
        run rehearsal{backend, rule, chosen, chosen.seed};
        result.state_bytes_per_parameter =
            static_cast<double>(meter.current()) / static_cast<double>(rehearsal.parameter_count());
        const auto trial = [&](demi::trial& size) { rehearsal.rehearse(size.batch_size()); };
        constexpr std::size_t most_images = 65536;
        result.certificate = demi::plan_batch(probe, {.maximum = most_images}, trial).certificate;
        plan = demi::plan_batch(
            probe, {.global_batch = chosen.batch, .data_size = digits.train.size()}, trial);
    }

    for (std::uint64_t seed = chosen.seed; seed < chosen.seed + chosen.seeds; ++seed) {
        typename run::loader train_images(digits.train);
        typename run::loader test_images(digits.test);
        meter.reset_peak();
        run current{backend, rule, chosen, seed};
        run_result& now = result.runs.emplace_back();
        now.seed = seed;
        std::chrono::duration<double> spent{};
        for (std::size_t epoch = 1; epoch <= chosen.epochs; ++epoch) {
            const auto start = std::chrono::steady_clock::now();
            now.epoch_losses.push_back(current.train(train_images, plan, now.steps));
            spent += std::chrono::steady_clock::now() - start;
            if constexpr (std::is_same_v<Policy, demi::full_float32>) {
                if (seed == chosen.seed) current.count_magnitudes(result);
            }
            progress.advance(name + ", seed " + std::to_string(seed) + ", epoch " +
                             std::to_string(epoch) + ", loss " + fixed(now.epoch_losses.back(), 4));
        }
        now.samples_per_second =
            static_cast<double>(digits.train.size() * chosen.epochs) / spent.count();
        now.accuracy = current.accuracy(test_images, plan.micro_batch);
        now.last_loss_scale = current.loss_scale();
        now.peak_bytes = meter.peak();
    }
    return result;
}

template <class Place>
policy_result compare(const std::string& name, Place& place, const nn::digits_split& digits,
                      const options& chosen, progress_bar& progress) {
    // The usual 2^16, times what the loss of an image is divided by. Too high is no harm: after a
    // few skipped steps the scale is where it should be.
    const demi::dynamic_loss_scale dynamic{
        .initial_scale = 0x1p16f * static_cast<float>(chosen.mean_over), .growth_interval = 25};
    const demi::no_loss_scale none;
    if (name == "full_float32") {
        return compare_policy<demi::full_float32>(name, place, none, digits, chosen, progress);
    }
    if (name == "mixed_bfloat16") {
        return compare_policy<demi::mixed_bfloat16>(name, place, none, digits, chosen, progress);
    }
    if (name == "float16_unscaled") {
        return compare_policy<demi::mixed_float16>(name, place, none, digits, chosen, progress);
    }
    return compare_policy<demi::mixed_float16>(name, place, dynamic, digits, chosen, progress);
}

}  // namespace digits_demo
