// SPDX-License-Identifier: MIT
/// What a search for a batch size was told, and what it can prove from that.
#pragma once

#include <demi/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace demi::inline DEMI_ABI {

enum class trial_verdict : std::uint8_t {
    fit,            ///< it ran, and its peak is within the budget
    over_budget,    ///< it ran, but with more memory than the budget allows
    out_of_memory,  ///< it was refused memory
    tainted,        ///< something else disturbed it: the size has to be tried again
};

/// How one trial ended.
struct trial_outcome {
    trial_verdict verdict = trial_verdict::tainted;
    std::size_t bytes = 0;

    /// It ran. A peak above the budget makes it `over_budget` all the same.
    static constexpr trial_outcome fit(std::size_t peak) { return {trial_verdict::fit, peak}; }

    /// It ran, but the size must not be used, for example because the allocator is thrashing.
    static constexpr trial_outcome over_budget(std::size_t peak) {
        return {trial_verdict::over_budget, peak};
    }

    /// It was refused memory; `lower_bound` is what it is known to need, 0 when unknown.
    static constexpr trial_outcome out_of_memory(std::size_t lower_bound = 0) {
        return {trial_verdict::out_of_memory, lower_bound};
    }

    static constexpr trial_outcome tainted() { return {trial_verdict::tainted, 0}; }
};

/// One line of the log of a search. `bytes` is the peak of a trial that ran, or what one that was
/// refused memory is known to need (0 when unknown).
struct trial_record {
    std::size_t size = 0;
    trial_verdict verdict = trial_verdict::tainted;
    std::size_t bytes = 0;

    friend constexpr bool operator==(const trial_record&, const trial_record&) = default;
};

enum class search_end : std::uint8_t {
    unfinished,    ///< `next()` has another size to try
    closed,        ///< the largest size that fits is known, up to the tolerance
    maximum,       ///< the largest size allowed fits
    nothing_fits,  ///< the smallest size allowed does not fit
    trial_limit,   ///< the trials were used up; the answer is verified but may not be the largest
};

/// The answer of a search and its evidence.
struct batch_certificate {
    /// Bytes that a trial may use.
    std::size_t budget = 0;
    /// The largest size that ran within the budget, 0 when there is none.
    std::size_t size = 0;
    /// The measured peak of that size, in bytes.
    std::size_t peak = 0;
    /// The smallest size above it that is known to fail.
    std::optional<trial_record> failure;
    /// True when a smaller size was seen to need more memory than a larger one: then `failure` does
    /// not prove that everything above it fails.
    bool non_monotone = false;
    search_end end = search_end::unfinished;
    /// Every trial, in order.
    std::vector<trial_record> trials;
};

constexpr const char* describe(trial_verdict verdict) {
    switch (verdict) {
        case trial_verdict::fit:
            return "fits";
        case trial_verdict::over_budget:
            return "over budget";
        case trial_verdict::out_of_memory:
            return "out of memory";
        case trial_verdict::tainted:
            break;
    }
    return "disturbed";
}

}  // namespace demi::inline DEMI_ABI
