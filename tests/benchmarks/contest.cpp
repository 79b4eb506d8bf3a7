// SPDX-License-Identifier: MIT
#include "contest.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <thread>

namespace bench {

namespace {

/// Seconds that count. One thread is measured by the processor time of the caller, which other
/// programs on the machine do not change; several threads by the clock on the wall.
double now(std::size_t threads) {
#if defined(CLOCK_THREAD_CPUTIME_ID)
    timespec time{};
    if (threads == 1 && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0) {
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }
#endif
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
}

double time_calls(const task& run, std::size_t calls, std::size_t threads) {
    const double start = now(threads);
    for (std::size_t i = 0; i < calls; ++i) run();
    return (now(threads) - start) / static_cast<double>(calls);
}

/// Threads of the contender before spin for a while: they must not take the second core from this
/// one.
void let_threads_sleep(std::size_t threads) {
    if (threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

struct entry {
    const contender* who;
    double seconds = 0;  ///< of one call, roughly
    std::size_t calls = 1;
};

entry calibrate(const contender& who, const pace& settings) {
    let_threads_sleep(settings.threads);
    who.run();
    entry result{&who};
    result.seconds = time_calls(who.run, 1, settings.threads);
    for (int i = 0;
         i < 3 && result.seconds * static_cast<double>(result.calls) < settings.sample_seconds / 2;
         ++i) {
        const double calls = settings.sample_seconds / std::max(result.seconds, 1e-9);
        result.calls = static_cast<std::size_t>(std::clamp(calls, 1.0, 1e6));
        result.seconds = time_calls(who.run, result.calls, settings.threads);
    }
    return result;
}

constexpr double short_call = 5e-3;

double sample(const entry& one, const pace& settings) {
    let_threads_sleep(settings.threads);
    if (one.seconds < short_call) one.who->run();
    return time_calls(one.who->run, one.calls, settings.threads);
}

}  // namespace

double figures::median() const { return spread_of(rates).middle; }

spread spread_of(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const auto at = [&](double part) {
        const double place = part * static_cast<double>(values.size() - 1);
        const auto below = static_cast<std::size_t>(place);
        const std::size_t above = std::min(below + 1, values.size() - 1);
        const double rest = place - static_cast<double>(below);
        return values[below] * (1 - rest) + values[above] * rest;
    };
    return {at(0.25), at(0.5), at(0.75)};
}

std::vector<figures> contest(const std::vector<contender>& all, const pace& settings) {
    constexpr std::size_t rounds_of_the_slow = 3;
    constexpr std::size_t most_rounds = 101;
    std::vector<entry> entries;
    std::vector<figures> results;
    constexpr std::size_t wall = 0;
    const double start = now(wall);
    double fastest = std::numeric_limits<double>::max();
    for (const contender& who : all) {
        if (!who.run) continue;
        entries.push_back(calibrate(who, settings));
        results.push_back({who.name, who.part, {}});
        fastest = std::min(fastest, entries.back().seconds / who.work);
    }
    for (std::size_t round = 0; round < settings.least_rounds ||
                                (now(wall) - start < settings.row_seconds && round < most_rounds);
         ++round) {
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const std::size_t turn = (i + round) % entries.size();
            const entry& one = entries[turn];
            const bool slow = one.seconds / one.who->work > 10 * fastest;
            if (slow && round >= rounds_of_the_slow) continue;
            results[turn].rates.push_back(one.who->work / sample(one, settings) / 1e9);
        }
    }
    return results;
}

spread compare(const figures& ours, const figures& other) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(ours.rates.size(), other.rates.size()); ++i) {
        ratios.push_back(ours.rates[i] / other.rates[i]);
    }
    return spread_of(std::move(ratios));
}

}  // namespace bench
