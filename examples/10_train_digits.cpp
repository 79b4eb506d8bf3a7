// SPDX-License-Identifier: MIT
// Trains a small network on handwritten digits under several precision policies, in one memory
// budget, and compares them. Start reading at `train`: that is the loop an engine would have.
#include "digits/html_report.hpp"
#include "digits/options.hpp"
#include "digits/results.hpp"
#include "digits/terminal.hpp"
#include "nn/digits.hpp"
#include "nn/image_loader.hpp"
#include "nn/mlp.hpp"
#include <demi/demi.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace digits_demo;

const std::vector<std::size_t> network_widths = {nn::digits::pixels, 128, 128, nn::digits::classes};

/// Adam does not care how small gradients are, as long as epsilon is smaller.
const demi::adamw update_rule = {.learning_rate = 3e-3f, .epsilon = 1e-15f};

/// Each thread takes workspace out of the budget, and the network is too small for many.
constexpr std::size_t most_threads = 2;

/// One training run: a network, its optimizer and its loss scaler, all in metered memory.
template <class Policy, class ScaleRule>
class training {
public:
    using network = nn::mlp<Policy, demi::host_backend>;
    using loader = nn::image_loader<typename network::compute_type>;

    training(demi::memory_meter& meter, const ScaleRule& rule, const options& chosen,
             std::uint64_t seed)
        : backend_{{.threads = most_threads, .memory = &meter}},
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
        for (const auto tensor : net_.activation_gradients()) {
            for (const auto value : tensor) result.activation_gradients.add(value);
        }
        for (const auto tensor : net_.gradients()) {
            for (const auto value : tensor) result.weight_gradients.add(value);
        }
    }

    std::size_t parameter_count() { return net_.parameters().element_count(); }
    float loss_scale() const { return scaler_.scale(); }

private:
    /// What turns the mean over some images into their part of a mean over `mean_over` of them.
    float loss_weight(std::size_t images) const {
        return static_cast<float>(static_cast<double>(images) /
                                  static_cast<double>(chosen_.mean_over));
    }

    demi::host_backend backend_;
    network net_;
    demi::optimizer<demi::adamw, Policy> optimizer_;
    demi::loss_scaler<demi::host_backend, ScaleRule> scaler_;
    const options& chosen_;
    std::mt19937_64 random_;
};

/// Plans in the budget, then trains once for every seed.
template <class Policy, class ScaleRule>
policy_result compare(const std::string& name, const ScaleRule& rule,
                      const nn::digits_split& digits, const options& chosen,
                      progress_bar& progress) {
    using run = training<Policy, ScaleRule>;
    policy_result result;
    result.name = name;

    demi::memory_meter meter;
    demi::metered_budget probe{meter, chosen.budget};
    demi::batch_plan plan;
    {
        run rehearsal{meter, rule, chosen, chosen.seed};
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
        run current{meter, rule, chosen, seed};
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

policy_result compare(const std::string& name, const nn::digits_split& digits,
                      const options& chosen, progress_bar& progress) {
    // The usual 2^16, times what the loss of an image is divided by. Too high is no harm: after a
    // few skipped steps the scale is where it should be.
    const demi::dynamic_loss_scale dynamic{
        .initial_scale = 0x1p16f * static_cast<float>(chosen.mean_over), .growth_interval = 25};
    const demi::no_loss_scale none;
    if (name == "full_float32") {
        return compare<demi::full_float32>(name, none, digits, chosen, progress);
    }
    if (name == "mixed_bfloat16") {
        return compare<demi::mixed_bfloat16>(name, none, digits, chosen, progress);
    }
    if (name == "float16_unscaled") {
        return compare<demi::mixed_float16>(name, none, digits, chosen, progress);
    }
    return compare<demi::mixed_float16>(name, dynamic, digits, chosen, progress);
}

/// What the table shows, in words with this run's numbers.
void explain(std::ostream& out, const std::vector<policy_result>& policies, const options& chosen) {
    out << "\nThe loss of one image has weight 1/" << chosen.mean_over
        << ", its share in a mean over as many items.\n";
    for (const auto& policy : policies) {
        if (policy.name != "full_float32") continue;
        out << "The smallest float16 is 2^-24. Below it, of the true gradients that are not 0, are "
            << fixed(100 * policy.activation_gradients.share_below(-24), 1)
            << " % of those by\nlayer outputs and "
            << fixed(100 * policy.weight_gradients.share_below(-24), 1)
            << " % of those by weights (float32, first seed): float16 has only 0 and 2^-24 for "
               "them, which is\nwhat float16_unscaled trains with. The loss scale of mixed_float16 "
               "moves them into its range.\n";
    }
}

int run(const options& chosen) {
    const std::string path =
        chosen.data.empty() ? std::string(DEMI_EXAMPLES_DATA_DIR "/digits.csv") : chosen.data;
    constexpr std::size_t test_images = 360;
    constexpr std::uint64_t split_seed = 1;
    const auto digits = nn::split_digits(nn::load_digits(path), test_images, split_seed);
    if (chosen.batch > digits.train.size()) {
        throw bad_usage("--batch of '" + std::to_string(chosen.batch) + "', expected at most " +
                        std::to_string(digits.train.size()) + ", the number of training images");
    }

    if (!chosen.report.empty() && !std::ofstream(chosen.report, std::ios::app)) {
        throw bad_usage("--report of '" + chosen.report + "', expected a file that can be written");
    }

    std::cout << digits.train.size() << " images for training, " << digits.test.size()
              << " for testing; " << chosen.epochs << " epochs, " << chosen.batch
              << " images per step, " << chosen.budget << " bytes, " << chosen.seeds
              << " seed(s)\n\n"
              << std::flush;
    std::vector<policy_result> policies;
    {
        progress_bar progress(chosen.policies.size() * chosen.seeds * chosen.epochs);
        for (const auto& name : chosen.policies) {
            policies.push_back(compare(name, digits, chosen, progress));
        }
    }
    print_table(std::cout, policies);
    explain(std::cout, policies, chosen);
    if (!chosen.report.empty()) {
        std::ofstream file(chosen.report);
        write_report(file, chosen, policies);
        std::cout << "\nreport: " << chosen.report << '\n';
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int wrong_use = 2;
    try {
        const options chosen = parse_options({argv + 1, argv + argc});
        if (chosen.help) {
            std::cout << usage;
            return 0;
        }
        return run(chosen);
    } catch (const bad_usage& failure) {
        std::cerr << "10_train_digits: " << failure.what() << '\n';
    } catch (const nn::bad_data& failure) {
        std::cerr << "10_train_digits: --data: " << failure.what() << '\n';
    } catch (const demi::does_not_fit& failure) {
        std::cerr << "10_train_digits: --budget is too small: a batch of "
                  << failure.smallest().size << " needs " << failure.smallest().bytes << " bytes\n";
    } catch (const std::exception& failure) {
        std::cerr << "10_train_digits: " << failure.what() << '\n';
        return 1;
    }
    return wrong_use;
}
