// SPDX-License-Identifier: MIT
/// One try of the user's training step at a candidate batch size.
#pragma once

#include <demi/core/config.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {

/// What the planner tells the user's training step, and what the step may tell the planner.
class trial {
public:
    /// `number` counts the trials of a plan from 1.
    explicit trial(std::size_t batch_size, std::size_t number = 1)
        : batch_size_(batch_size), number_(number) {}

    /// The number of samples to train on.
    std::size_t batch_size() const noexcept { return batch_size_; }

    std::size_t number() const noexcept { return number_; }

    /// Says how much memory the step needed: everything this process uses, in the count of the
    /// probe's `peak_bytes()`; for a probe without one, the bytes on top of what was in use when
    /// the planning began. The largest report counts.
    void report_peak(std::size_t bytes) {
        has_peak_ = true;
        peak_ = std::max(peak_, bytes);
    }

    /// Says how many optimizer updates this call took, 0 for one that the loss scaler skipped.
    /// Without a report a call counts as one update.
    void report_updates(std::size_t updates) {
        has_updates_ = true;
        updates_ += updates;
    }

    /// For engines without exceptions: says that the step was refused memory and has cleaned up.
    /// `lower_bound` is what it is known to need, 0 when unknown.
    void report_out_of_memory(std::size_t lower_bound = 0) {
        is_refused_ = true;
        lower_bound_ = lower_bound;
    }

    bool has_peak() const noexcept { return has_peak_; }
    std::size_t peak() const noexcept { return peak_; }
    bool is_refused() const noexcept { return is_refused_; }
    std::size_t lower_bound() const noexcept { return lower_bound_; }

    /// The updates reported since the last call of this function, 1 when there was no report.
    std::size_t take_updates() noexcept {
        const std::size_t unreported = std::exchange(has_updates_, false) ? 0 : 1;
        return std::exchange(updates_, 0) + unreported;
    }

private:
    std::size_t batch_size_;
    std::size_t number_;
    bool has_peak_ = false;
    bool has_updates_ = false;
    std::size_t peak_ = 0;
    std::size_t updates_ = 0;
    bool is_refused_ = false;
    std::size_t lower_bound_ = 0;
};

/// The user's training step as the planner calls it. A model `F`
///
/// 1. takes a `trial&` and runs one whole step, optimizer update included, on `batch_size()`
///    samples as large as the data can have them;
/// 2. returns nothing, or its measured peak in bytes (see `trial::report_peak`);
/// 3. throws what `is_out_of_memory` recognises when memory runs out, or reports it; other
///    exceptions end the planning and reach the caller unchanged;
/// 4. leaves model, random state and data position as they were, as far as the caller cares.
template <class F>
concept batch_trial = std::invocable<F&, trial&> &&
    (std::is_void_v<std::invoke_result_t<F&, trial&>> ||
     std::convertible_to<std::invoke_result_t<F&, trial&>, std::size_t>);

}  // namespace demi::inline DEMI_ABI
