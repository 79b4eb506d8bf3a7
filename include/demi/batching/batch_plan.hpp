// SPDX-License-Identifier: MIT
/// How a global batch is cut into micro-batches that fit, with the evidence that they do.
#pragma once

#include <demi/batching/batch_certificate.hpp>
#include <demi/batching/micro_batches.hpp>
#include <demi/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

namespace demi::inline DEMI_ABI {

/// The part of a plan that a checkpoint keeps: a resumed run splits its batches in the same way.
struct plan_shape {
    /// Samples of one optimizer update.
    std::uint64_t global_batch = 0;
    /// Samples of one forward and backward pass.
    std::uint64_t micro_batch = 0;
    /// A last micro-batch below this shares with the one before it.
    std::uint64_t smallest_micro_batch = 1;

    /// Micro-batches of a full global batch.
    std::size_t accumulation_steps() const { return split(global_batch).size(); }

    /// Cuts a batch, given as its number of samples or as a container with one element per sample.
    /// It may be shorter or longer than the global batch: weights are shares of this batch. Always
    /// split the batch itself, not a piece of it. Throws `invalid_argument` for an empty one.
    template <splittable Batch>
    micro_batches split(const Batch& batch) const {
        return demi::split(batch, micro_batch, smallest_micro_batch);
    }

    friend constexpr bool operator==(const plan_shape&, const plan_shape&) = default;
};

/// The answer of `plan_batch`.
struct batch_plan : plan_shape {
    /// The largest peak, in bytes, among the sizes that this plan uses; all of them ran.
    std::size_t peak = 0;
    /// Bytes that the budget leaves unused.
    std::size_t margin = 0;
    /// Bytes that were not free again after trials that failed: a leak, a cache that keeps its
    /// memory, or state that the engine creates late.
    std::size_t not_returned = 0;
    /// What was tried, and what is proven by it.
    batch_certificate certificate;

    const plan_shape& shape() const noexcept { return *this; }
};

/// Not even the smallest batch size allowed fits.
class does_not_fit : public error {
public:
    does_not_fit(const std::string& message, const trial_record& smallest, std::size_t budget)
        : error(message), smallest_(smallest), budget_(budget) {}

    /// The smallest size that was tried and failed, how, and its bytes (a lower bound of what it
    /// needs if it was refused memory, 0 when unknown).
    const trial_record& smallest() const noexcept { return smallest_; }

    /// Bytes that a trial was allowed to use.
    std::size_t budget() const noexcept { return budget_; }

private:
    trial_record smallest_;
    std::size_t budget_;
};

/// A trial ended without an error, but nothing can be concluded from it.
class invalid_trial : public error {
public:
    using error::error;
};

namespace detail {

/// A number of bytes for people, rounded down to a tenth of its unit.
inline std::string byte_text(std::size_t bytes) {
    constexpr const char* units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    std::size_t unit = 0;
    std::size_t size = 1;
    while (unit < 4 && bytes / size >= 1024) {
        size *= 1024;
        ++unit;
    }
    const std::size_t tenths = bytes % size * 10 / size;
    if (unit == 0) return message(bytes, units[unit]);
    return message(bytes / size, ".", tenths, units[unit]);
}

}  // namespace detail

/// One line of a log.
inline std::string describe(const trial_record& trial) {
    std::string text = detail::message("batch ", trial.size, ": ", describe(trial.verdict));
    if (trial.bytes > 0) {
        const bool is_bound = trial.verdict == trial_verdict::out_of_memory;
        text += detail::message(", ", is_bound ? "at least " : "", detail::byte_text(trial.bytes));
    }
    return text;
}

/// What was planned and why, in a few lines.
inline std::string describe(const batch_plan& plan) {
    const batch_certificate& proof = plan.certificate;
    std::string text = detail::message(
        plan.global_batch, " samples per update as ", plan.accumulation_steps(), " x ",
        plan.micro_batch, ", peak ", detail::byte_text(plan.peak), " of a budget of ",
        detail::byte_text(proof.budget), "\n", "largest batch that fits, after ",
        proof.trials.size(), " trials: ", proof.size, " (", detail::byte_text(proof.peak), ")");
    if (proof.failure) text += detail::message("; ", describe(*proof.failure));
    if (proof.end == search_end::maximum) text += "; it is the largest allowed";
    if (proof.end == search_end::trial_limit) text += "; the trials were used up";
    text += "\n";
    if (proof.non_monotone) text += "a smaller batch was seen to need more than a larger one\n";
    if (plan.not_returned > 0) {
        text += detail::message(detail::byte_text(plan.not_returned),
                                " were not free again after trials that failed\n");
    }
    return text;
}

inline std::ostream& operator<<(std::ostream& stream, const batch_plan& plan) {
    return stream << describe(plan);
}

}  // namespace demi::inline DEMI_ABI
