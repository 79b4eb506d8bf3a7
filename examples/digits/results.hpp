// SPDX-License-Identifier: MIT
/// What the training runs measured: plain values for the table and the report.
#pragma once

#include <demi/batching/batch_certificate.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace digits_demo {

/// One optimizer step.
struct step_record {
    float loss_scale = 1;
    bool skipped = false;
};

/// How many gradient values have a magnitude of [2^e, 2^(e+1)), counted for each e.
struct magnitude_histogram {
    static constexpr int least = -60;
    static constexpr int most = 4;

    std::array<std::uint64_t, most - least + 1> counts{};
    std::uint64_t zeros = 0;

    void add(float value) {
        if (value == 0.0f) {
            ++zeros;
            return;
        }
        const int exponent = std::ilogb(value);
        ++counts[static_cast<std::size_t>(std::min(std::max(exponent, least), most) - least)];
    }
    std::uint64_t count(int exponent) const {
        return counts[static_cast<std::size_t>(exponent - least)];
    }
    std::uint64_t total() const {
        std::uint64_t sum = 0;
        for (const auto count : counts) sum += count;
        return sum;
    }
    /// The share of values other than zero below 2^exponent.
    double share_below(int exponent) const {
        std::uint64_t below = 0;
        for (int e = least; e < exponent; ++e) below += count(e);
        return total() == 0 ? 0 : static_cast<double>(below) / static_cast<double>(total());
    }
};

/// One training run.
struct run_result {
    std::uint64_t seed = 0;
    double accuracy = 0;  ///< share of the test images
    double samples_per_second = 0;
    float last_loss_scale = 1;
    std::size_t peak_bytes = 0;
    std::vector<double> epoch_losses;  ///< mean cross-entropy of the training images, unweighted
    std::vector<step_record> steps;
};

/// All runs under one policy.
struct policy_result {
    std::string name;
    double state_bytes_per_parameter = 0;
    demi::batch_certificate certificate;
    std::vector<run_result> runs;
    /// Gradients by layer outputs of the first run, without loss scale; float32 only.
    magnitude_histogram activation_gradients;
    magnitude_histogram weight_gradients;
};

struct mean_and_deviation {
    double mean = 0;
    double deviation = 0;  ///< of a sample: divides by count - 1; 0 for one value
};

inline mean_and_deviation accuracy_of(const policy_result& policy) {
    mean_and_deviation result;
    const auto count = static_cast<double>(policy.runs.size());
    for (const auto& run : policy.runs) result.mean += run.accuracy / count;
    for (const auto& run : policy.runs) {
        result.deviation += (run.accuracy - result.mean) * (run.accuracy - result.mean);
    }
    result.deviation = count > 1 ? std::sqrt(result.deviation / (count - 1)) : 0;
    return result;
}

inline std::size_t skipped_steps(const policy_result& policy) {
    std::size_t count = 0;
    for (const auto& run : policy.runs) {
        for (const auto& step : run.steps) count += step.skipped ? 1 : 0;
    }
    return count;
}

inline std::size_t all_steps(const policy_result& policy) {
    std::size_t count = 0;
    for (const auto& run : policy.runs) count += run.steps.size();
    return count;
}

inline double samples_per_second(const policy_result& policy) {
    double sum = 0;
    for (const auto& run : policy.runs) sum += run.samples_per_second;
    return sum / static_cast<double>(policy.runs.size());
}

}  // namespace digits_demo
