// SPDX-License-Identifier: MIT
// Trains a small network on handwritten digits under several precision policies, in one memory
// budget, and compares them. The training is in digits/training.hpp.
#include "digits/device_training.hpp"
#include "digits/html_report.hpp"
#include "digits/options.hpp"
#include "digits/results.hpp"
#include "digits/terminal.hpp"
#include "digits/training.hpp"
#include "nn/digits.hpp"
#include <demi/host/host_backend.hpp>

#include <cstddef>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace digits_demo;

/// The host's memory and threads.
struct host_place {
    /// Each thread takes workspace out of the budget, and the network is too small for many.
    static constexpr std::size_t most_threads = 2;

    std::pmr::memory_resource* upstream() { return nullptr; }
    demi::host_backend backend(demi::memory_meter& meter) {
        return demi::host_backend{{.threads = most_threads, .memory = &meter}};
    }
};

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
            if (chosen.device == "cuda") {
                policies.push_back(compare_on_device(name, digits, chosen, progress));
            } else {
                host_place host;
                policies.push_back(compare(name, host, digits, chosen, progress));
            }
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
