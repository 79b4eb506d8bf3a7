// SPDX-License-Identifier: MIT
/// Finds the micro-batch size by running the user's training step.
#pragma once

#include <demi/batching/batch_plan.hpp>
#include <demi/batching/batch_search.hpp>
#include <demi/batching/detail/trial_runner.hpp>
#include <demi/batching/memory_probe.hpp>
#include <demi/batching/trial.hpp>
#include <demi/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <initializer_list>
#include <optional>
#include <type_traits>

namespace demi::inline DEMI_ABI {

struct batch_plan_settings {
    /// Samples of one optimizer update; 0 for as many as fit at once, without accumulation.
    std::size_t global_batch = 0;
    /// Samples of the whole data set; 0 when unknown. No batch is larger, and the sizes of its last
    /// batch are tried as well.
    std::size_t data_size = 0;
    /// The largest micro-batch to consider.
    std::size_t maximum = std::size_t{1} << 20;
    /// Micro-batches are multiples of this, a short last one excepted.
    std::size_t multiple = 1;
    /// The smallest micro-batch of use, 2 for batch normalisation.
    std::size_t smallest_micro_batch = 1;
    /// Bytes of free memory to leave unused. By default what the probe suggests: nothing of a
    /// budget that the user states, a part of physical memory.
    std::optional<std::size_t> margin = std::nullopt;
    /// See `batch_search_settings`.
    double tolerance = 0;
    std::size_t start = 8;
    std::size_t max_trials = 64;
    /// Optimizer updates of one trial: memory that appears at the second one is seen with 2.
    std::size_t updates_per_trial = 2;
    /// Run one trial before the others and forget its peak, for an engine that tunes itself first.
    bool warm_up = false;
    /// Changes of free memory up to this many bytes are taken for noise.
    std::size_t drift = std::size_t{32} << 20;
    /// Recognises more exceptions as memory running out, for example `is_thrown<engine_error>`.
    std::function<bool(const std::exception_ptr&)> also_out_of_memory = {};
};

namespace detail {

/// The micro-batch for a global batch when `limit` is the largest one that fits. Fewest steps
/// first, then steps of equal size: the largest divisor of the global batch, unless it is below two
/// thirds of what equal sharing gives.
inline std::size_t choose_micro_batch(std::size_t global_batch, std::size_t limit,
                                      std::size_t multiple, std::size_t smallest) {
    if (global_batch == 0) return limit;
    const std::size_t steps = (global_batch - 1) / limit + 1;
    const std::size_t share = (global_batch - 1) / steps + 1;
    const std::size_t balanced = std::min(limit, (share - 1) / multiple * multiple + multiple);
    const std::size_t least = std::max(smallest, balanced - balanced / 3);
    for (std::size_t size = balanced; size > 0 && size >= least; size -= multiple) {
        if (global_batch % size == 0) return size;
    }
    return balanced;
}

template <class Probe, class Step>
class batch_planner {
public:
    batch_planner(Probe& probe, const batch_plan_settings& settings, Step& step)
        : settings_(settings),
          runner_(probe,
                  {settings.margin, settings.updates_per_trial, settings.drift,
                   settings.also_out_of_memory},
                  step),
          search_({.budget = runner_.budget(),
                   .minimum = settings.smallest_micro_batch,
                   .maximum = largest(),
                   .multiple = settings.multiple,
                   .tolerance = settings.tolerance,
                   .start = settings.start,
                   .max_trials = settings.max_trials}) {}

    batch_plan plan() {
        if (settings_.warm_up) static_cast<void>(runner_.run(*search_.next()));
        for (std::size_t limit = settings_.maximum;;) {
            while (const auto size = search_.next()) search_.tell(run(*size));
            limit = std::min(limit, search_.certificate().size);
            if (limit < std::max(settings_.smallest_micro_batch, settings_.multiple)) refuse();
            const plan_shape shape = shape_for(limit);
            const std::size_t size = first_unproven(shape);
            if (size == 0) return finish(shape);
            if (proven(size) == false) {
                limit = shape.micro_batch / 2 / settings_.multiple * settings_.multiple;
            } else {
                search_.record(size, run(size));
            }
        }
    }

private:
    std::size_t largest() const {
        std::size_t size = settings_.maximum;
        if (settings_.global_batch > 0) size = std::min(size, settings_.global_batch);
        if (settings_.data_size > 0) size = std::min(size, settings_.data_size);
        return size;
    }

    trial_outcome run(std::size_t size) {
        const trial_outcome outcome = runner_.run(size);
        search_.lower_budget(runner_.budget());
        return outcome;
    }

    plan_shape shape_for(std::size_t limit) const {
        const std::size_t micro = choose_micro_batch(
            settings_.global_batch, limit, settings_.multiple, settings_.smallest_micro_batch);
        return {settings_.global_batch > 0 ? settings_.global_batch : micro, micro,
                settings_.smallest_micro_batch};
    }

    /// True for a size that fits, false for one that does not, nothing for one to be tried.
    std::optional<bool> proven(std::size_t size) const {
        std::optional<bool> fits;
        std::size_t disturbed = 0;
        for (const trial_record& trial : search_.certificate().trials) {
            if (trial.size != size) continue;
            if (trial.verdict != trial_verdict::tainted) {
                fits = trial.verdict == trial_verdict::fit;
            } else if (++disturbed > 2) {
                fits = false;
            }
        }
        return fits;
    }

    /// Calls `visit` with each size that training with this shape uses.
    template <class Visitor>
    void visit_sizes(const plan_shape& shape, Visitor visit) const {
        const std::size_t last_batch =
            settings_.data_size > 0 ? settings_.data_size % shape.global_batch : 0;
        for (const std::size_t batch : {std::size_t{shape.global_batch}, last_batch}) {
            if (batch == 0) continue;
            const micro_batches pieces = shape.split(batch);
            visit(pieces[0].size);
            if (pieces.size() > 1) visit(pieces[pieces.size() - 2].size);
            visit(pieces[pieces.size() - 1].size);
        }
    }

    std::size_t first_unproven(const plan_shape& shape) const {
        std::size_t unproven = 0;
        visit_sizes(shape, [&](std::size_t size) {
            if (unproven == 0 && proven(size) != true) unproven = size;
        });
        return unproven;
    }

    batch_plan finish(const plan_shape& shape) const {
        batch_plan plan{shape, 0, runner_.margin(), runner_.not_returned(), search_.certificate()};
        visit_sizes(shape, [&](std::size_t size) {
            for (const trial_record& trial : plan.certificate.trials) {
                if (trial.size == size && trial.verdict == trial_verdict::fit) {
                    plan.peak = std::max(plan.peak, trial.bytes);
                }
            }
        });
        return plan;
    }

    [[noreturn]] void refuse() const {
        const batch_certificate& proof = search_.certificate();
        trial_record smallest;
        for (const trial_record& trial : proof.trials) {
            if (trial.verdict == trial_verdict::fit) continue;
            if (smallest.size == 0 || trial.size <= smallest.size) smallest = trial;
        }
        raise(does_not_fit(message("plan_batch: nothing fits after ", proof.trials.size(),
                                   " trials: ", describe(smallest), ", expected at most ",
                                   byte_text(proof.budget)),
                           smallest, proof.budget));
    }

    const batch_plan_settings& settings_;
    trial_runner<Probe, Step> runner_;
    batch_search search_;
};

}  // namespace detail

/// Runs the training step at a few batch sizes and plans the micro-batches of a global batch.
///
/// Every size that the plan uses has run with a measured peak within the budget, the short last
/// micro-batch included. The budget is the memory free at the start (and what this process uses
/// then, for a probe that measures peaks) less the margin; it shrinks when others take memory
/// meanwhile. The peak of a trial is the larger of what the probe measured and what the step
/// reported. A size that ran out of memory is followed by the next one outside of the exception
/// handler. Throws `does_not_fit` when nothing fits, `invalid_trial` when a step reports no peak
/// that the probe does not measure either, or takes no updates, `invalid_argument` for settings
/// that leave nothing to try; what the step throws for other reasons passes unchanged.
template <memory_probe Probe, batch_trial Step>
batch_plan plan_batch(Probe&& probe, const batch_plan_settings& settings, Step&& step) {
    return detail::batch_planner<std::remove_reference_t<Probe>, std::remove_reference_t<Step>>(
               probe, settings, step)
        .plan();
}

}  // namespace demi::inline DEMI_ABI
