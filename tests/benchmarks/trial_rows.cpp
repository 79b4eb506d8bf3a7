// SPDX-License-Identifier: MIT
/// Trials of the batch planner beside those of doubling and bisection, on simulated memory.
#include "session.hpp"
#include <demi/batching/plan_batch.hpp>
#include <demi/batching/simulated_memory.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace bench {

namespace {

constexpr std::size_t largest_batch = 60000;
constexpr double gib = 0x1p30;

/// A training step on a device: a fixed part, a part in proportion to the batch, at times in the
/// steps of an allocator, and at times jumps where a library changes its algorithm.
class device {
public:
    explicit device(std::mt19937_64& random) {
        fixed_ = uniform(random, 0.05, 0.8) * budget();
        const double answer = 8 * std::exp2(uniform(random, 0, 10));
        slope_ = (budget() - fixed_) / answer;
        if (random() % 2 == 0) granule_ = static_cast<double>(32u << random() % 5) * 0x1p20;
        jumps_.resize(random() % 3);
        for (jump& one : jumps_) {
            one.at = std::floor(uniform(random, 1, 1.5 * answer));
            one.bytes = uniform(random, 0, 0.2) * budget();
        }
    }

    static double capacity() { return 23 * gib; }
    static double margin() { return 1.15 * gib; }
    static double budget() { return capacity() - margin(); }

    /// The peak of one step in bytes.
    std::size_t operator()(std::size_t batch) const {
        const auto size = static_cast<double>(batch);
        double bytes = slope_ * size;
        if (granule_ > 0) bytes = granule_ * std::ceil(bytes / granule_);
        for (const jump& one : jumps_) bytes += size >= one.at ? one.bytes : 0;
        return static_cast<std::size_t>(std::ceil(fixed_ + bytes));
    }

    bool fits(std::size_t batch) const {
        return (*this)(batch) <= static_cast<std::size_t>(budget());
    }

private:
    struct jump {
        double at = 0;
        double bytes = 0;
    };

    static double uniform(std::mt19937_64& random, double from, double to) {
        return from + (to - from) * (static_cast<double>(random() >> 11) * 0x1p-53);
    }

    double fixed_ = 0;
    double slope_ = 0;
    double granule_ = 0;
    std::vector<jump> jumps_;
};

struct answer {
    std::size_t size = 0;
    std::size_t trials = 0;
};

/// Doubles from 8 until a size fails, halves while none fits, then bisects.
answer double_and_bisect(const device& where) {
    std::size_t size = 8;
    std::size_t low = 0;
    std::size_t high = 0;
    for (std::size_t trials = 1;; ++trials) {
        (where.fits(size) ? low : high) = size;
        if (high == 1 || low == largest_batch || (low > 0 && high == low + 1)) {
            return {low, trials};
        }
        if (low == 0) {
            size /= 2;
        } else {
            size = high == 0 ? std::min(2 * size, largest_batch) : low + (high - low) / 2;
        }
    }
}

answer plan(const device& where) {
    demi::simulated_memory memory(where,
                                  {.capacity = static_cast<std::size_t>(device::capacity())});
    const demi::batch_plan found = demi::plan_batch(
        memory, {.maximum = largest_batch, .margin = static_cast<std::size_t>(device::margin())},
        [&](demi::trial& trial) { memory.step(trial.batch_size()); });
    return {found.micro_batch, found.certificate.trials.size()};
}

}  // namespace

void count_trials(const options& chosen, report& results) {
    if (std::string("planner").find(chosen.filter) == std::string::npos) return;
    constexpr std::size_t devices = 3000;
    std::size_t cases = 0;
    std::mt19937_64 random(7);
    double ours = 0;
    double theirs = 0;
    std::size_t most_above = 0;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < devices; ++i) {
        const device where(random);
        if (!where.fits(1)) continue;
        ++cases;
        const answer planned = plan(where);
        const answer bisected = double_and_bisect(where);
        if (planned.size != bisected.size || !where.fits(planned.size)) ++wrong;
        ours += static_cast<double>(planned.trials);
        theirs += static_cast<double>(bisected.trials);
        most_above =
            std::max(most_above, planned.trials - std::min(planned.trials, bisected.trials));
    }
    results.add({.work = "planner, trials",
                 .against = "doubling and bisection",
                 .rows = cases,
                 .mean = ours / theirs,
                 .goal_mean = 0.6,
                 .worst = static_cast<double>(most_above),
                 .goal_worst = 2,
                 .worst_name = "most trials more",
                 .small_is_good = true});
    results.add({.work = "planner, answers",
                 .against = "largest batch that fits",
                 .rows = cases,
                 .mean = static_cast<double>(wrong),
                 .worst_name = "wrong answers",
                 .small_is_good = true});
}

}  // namespace bench
