// SPDX-License-Identifier: MIT
/// The search for the largest batch size that fits: a state machine that is asked and told.
#pragma once

#include <demi/batching/batch_certificate.hpp>
#include <demi/batching/detail/search_bracket.hpp>
#include <demi/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace demi::inline DEMI_ABI {

struct batch_search_settings {
    /// Bytes that a trial may use; its peak may reach them.
    std::size_t budget = 0;
    /// The smallest size of use.
    std::size_t minimum = 1;
    /// The largest size to consider.
    std::size_t maximum = std::size_t{1} << 20;
    /// Only multiples of this are tried.
    std::size_t multiple = 1;
    /// How far above the answer the smallest failing size may be, as a fraction of the answer.
    double tolerance = 0;
    /// The first size to try; a prediction saves trials, and a wrong one costs only trials.
    std::size_t start = 8;
    /// How many times the largest size that fits the next one may be, at most.
    std::size_t growth = 8;
    /// How many trials more than doubling and bisection the search may risk.
    std::size_t slack = 2;
    /// Trials after which the search ends with what is verified.
    std::size_t max_trials = 64;
};

/// Finds the largest batch size whose peak memory is within a budget, in few trials.
///
/// Whoever runs the trials owns the loop: `while (auto size = search.next())
/// search.tell(run(*size))`. The search extrapolates a straight line through measured peaks until a
/// size fails, interpolates between the largest fit and the smallest failure after that, and falls
/// back to bisection when the curve does not follow. It keeps four promises.
///
/// 1. The answer is a size that ran with a peak within the budget. Size 0 is never tried.
/// 2. When memory does not shrink as the size grows, every size beyond the answer and the tolerance
///    fails; `certificate().failure` is the witness.
/// 3. It ends after at most `max_trials`, and usually long before: a straight line takes four
///    trials from a start within `growth` of the answer.
/// 4. The same answers give the same questions, so ranks that are told the same stay together.
///
/// A `tainted` size is asked for again, twice; then it counts as failed.
class batch_search {
public:
    /// Throws `invalid_argument` for a value that leaves nothing to search.
    explicit batch_search(const batch_search_settings& settings) : settings_(settings) {
        require(settings.budget > 0, "budget", settings.budget, "at least 1 byte");
        require(settings.multiple > 0, "multiple", settings.multiple, "at least 1");
        require(settings.minimum > 0, "minimum", settings.minimum, "at least 1");
        require(first() <= last(), "maximum", settings.maximum,
                "a multiple of the multiple at or above the minimum");
        require(is_fraction(settings.tolerance), "tolerance", settings.tolerance,
                "a fraction from 0 to 1");
        require(settings.start > 0, "start", settings.start, "at least 1");
        require(settings.growth > 1, "growth", settings.growth, "at least 2");
        require(settings.max_trials > 0, "max_trials", settings.max_trials, "at least 1");
        certificate_.budget = settings.budget;
        restart();
    }

    /// The size to try now, or nothing when the search has ended. Asking again repeats the answer.
    std::optional<std::size_t> next() {
        if (certificate_.end != search_end::unfinished) return std::nullopt;
        if (!asked_) asked_ = (retries_ > 0 ? tainted_ : bracket_.propose()) * settings_.multiple;
        return asked_;
    }

    /// Says how the trial of the size that `next()` gave ended. Throws `invalid_state` when none
    /// was asked for.
    void tell(const trial_outcome& outcome) {
        if (!asked_) {
            detail::raise(
                invalid_state("batch_search: tell() without a size asked for, expected next() "
                              "before each tell()"));
        }
        certificate_.trials.push_back({*asked_, outcome.verdict, outcome.bytes});
        asked_.reset();
        take(certificate_.trials.back());
        conclude();
    }

    /// Adds a trial that the search did not ask for, such as that of a short last micro-batch.
    void record(std::size_t size, const trial_outcome& outcome) {
        require(size > 0, "recorded size", size, "at least 1");
        certificate_.trials.push_back({size, outcome.verdict, outcome.bytes});
        take(certificate_.trials.back());
        conclude();
    }

    /// Takes memory away, because somebody else uses it now: what ran with more no longer counts as
    /// a fit, and an ended search may have more to ask. A size asked for may still be told. A
    /// budget above the present one is ignored.
    void lower_budget(std::size_t bytes) {
        if (bytes >= settings_.budget) return;
        require(bytes > 0, "budget", bytes, "at least 1 byte");
        settings_.budget = certificate_.budget = bytes;
        restart();
        for (trial_record& trial : certificate_.trials) take(trial);
        conclude();
    }

    /// What is known so far.
    const batch_certificate& certificate() const noexcept { return certificate_; }

    const batch_search_settings& settings() const noexcept { return settings_; }

private:
    static constexpr std::size_t max_retries = 2;

    template <class Number>
    static void require(bool holds, const char* name, Number value, const char* expected) {
        if (holds) return;
        detail::raise(invalid_argument(
            detail::message("batch_search: ", name, " is ", value, ", expected ", expected)));
    }

    /// Compares bits, because with -ffast-math a comparison does not reject NaN.
    static bool is_fraction(double value) {
        return __builtin_bit_cast(std::uint64_t, value + 0.0) <=
               __builtin_bit_cast(std::uint64_t, 1.0);
    }

    std::size_t first() const { return (settings_.minimum - 1) / settings_.multiple + 1; }
    std::size_t last() const { return settings_.maximum / settings_.multiple; }

    void restart() {
        retries_ = 0;
        bracket_ = detail::search_bracket({.budget = static_cast<double>(settings_.budget),
                                           .first = first(),
                                           .last = last(),
                                           .start = settings_.start / settings_.multiple,
                                           .tolerance = settings_.tolerance,
                                           .growth = settings_.growth,
                                           .slack = settings_.slack});
    }

    void take(trial_record& trial) {
        if (trial.verdict == trial_verdict::fit && trial.bytes > settings_.budget) {
            trial.verdict = trial_verdict::over_budget;
        }
        if (trial.size % settings_.multiple != 0) return;
        const std::size_t index = trial.size / settings_.multiple;
        if (trial.verdict == trial_verdict::tainted) {
            if (retries_ > 0 && tainted_ != index) retries_ = 0;
            tainted_ = index;
            if (++retries_ <= max_retries) return;
            retries_ = 0;
            bracket_.fail(index, std::nullopt);
            return;
        }
        retries_ = 0;
        const auto bytes = static_cast<double>(trial.bytes);
        switch (trial.verdict) {
            case trial_verdict::fit:
                bracket_.fit(index, bytes);
                break;
            case trial_verdict::over_budget:
                bracket_.fail(index, bytes);
                break;
            default:
                bracket_.fail(index, std::nullopt);
        }
    }

    void conclude() {
        const std::size_t lower = bracket_.lower() * settings_.multiple;
        const std::size_t upper = bracket_.upper() * settings_.multiple;
        certificate_.size = lower;
        certificate_.peak = 0;
        certificate_.failure.reset();
        certificate_.non_monotone = bracket_.non_monotone();
        for (const trial_record& trial : certificate_.trials) {
            if (trial.size == lower && trial.verdict == trial_verdict::fit) {
                certificate_.peak = std::max(certificate_.peak, trial.bytes);
            }
            if (upper > 0 && trial.size == upper) certificate_.failure = trial;
            if (trial.size < lower && failed(trial)) certificate_.non_monotone = true;
        }
        certificate_.end = ending();
    }

    static bool failed(const trial_record& trial) {
        return trial.verdict == trial_verdict::over_budget ||
               trial.verdict == trial_verdict::out_of_memory;
    }

    search_end ending() const {
        if (bracket_.upper() == first()) return search_end::nothing_fits;
        if (bracket_.at_last()) return search_end::maximum;
        if (bracket_.closed()) return search_end::closed;
        if (certificate_.trials.size() >= settings_.max_trials) return search_end::trial_limit;
        return search_end::unfinished;
    }

    batch_search_settings settings_;
    batch_certificate certificate_;
    detail::search_bracket bracket_;
    std::optional<std::size_t> asked_;
    std::size_t tainted_ = 0;
    std::size_t retries_ = 0;
};

}  // namespace demi::inline DEMI_ABI
