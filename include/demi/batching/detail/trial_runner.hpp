// SPDX-License-Identifier: MIT
/// Runs one trial and watches memory around it.
#pragma once

#include <demi/batching/batch_certificate.hpp>
#include <demi/batching/batch_plan.hpp>
#include <demi/batching/memory_probe.hpp>
#include <demi/batching/out_of_memory.hpp>
#include <demi/batching/trial.hpp>
#include <demi/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {

namespace detail {

struct trial_runner_settings {
    std::optional<std::size_t> margin;
    std::size_t updates = 1;
    std::size_t drift = 0;
    std::function<bool(const std::exception_ptr&)> also_out_of_memory;
};

template <class Probe, class Step>
class trial_runner {
public:
    trial_runner(Probe& probe, trial_runner_settings settings, Step& step)
        : probe_(probe),
          settings_(std::move(settings)),
          step_(step),
          margin_(settings_.margin ? *settings_.margin : suggested_margin(probe)),
          now_(measure()),
          capacity_(std::min<std::size_t>(now_.own + now_.free, probe.total_bytes())) {
        if (settings_.updates == 0) {
            raise(invalid_argument("plan_batch: updates_per_trial is 0, expected at least 1"));
        }
        if (capacity_ <= margin_) {
            raise(invalid_argument(message("plan_batch: the margin is ", margin_,
                                           " bytes, expected less than the ", capacity_,
                                           " bytes that can be used")));
        }
    }

    std::size_t budget() const { return capacity_ > margin_ ? capacity_ - margin_ : 1; }
    std::size_t margin() const { return margin_; }
    std::size_t not_returned() const { return not_returned_; }

    trial_outcome run(std::size_t size) {
        trial current(size, ++count_);
        if constexpr (peak_memory_probe<Probe>) probe_.reset_peak();
        const ending end = attempt(current);
        const std::size_t peak = peak_of(current);
        if (end == ending::ran) require_peak(current);
        if (end == ending::idle) refuse_idle(current);
        const bool failed = end == ending::refused;
        if constexpr (recovering_memory_probe<Probe>) {
            if (failed) probe_.recover();
        }
        const bool others_moved = observe(failed);
        if (!failed) return trial_outcome::fit(peak);
        if (others_moved) return trial_outcome::tainted();
        return trial_outcome::out_of_memory(std::max(peak, current.lower_bound()));
    }

private:
    /// Calls beyond the updates asked for, in which a loss scaler may find its scale.
    static constexpr std::size_t skips_allowed = 32;

    enum class ending { ran, refused, idle };

    struct reading {
        std::size_t own = 0;
        std::size_t free = 0;
    };

    reading measure() {
        reading now;
        if constexpr (peak_memory_probe<Probe>) {
            probe_.reset_peak();
            now.own = probe_.peak_bytes();
        }
        now.free = probe_.free_bytes();
        return now;
    }

    ending attempt(trial& current) {
#if DEMI_EXCEPTIONS
        try {
            return call(current);
        } catch (const out_of_memory& refusal) {
            current.report_out_of_memory(refusal.requested_bytes());
        } catch (...) {
            if (!recognises(std::current_exception())) throw;
            current.report_out_of_memory();
        }
        return ending::refused;
#else
        return call(current);
#endif
    }

#if DEMI_EXCEPTIONS
    bool recognises(const std::exception_ptr& failure) const {
        return is_out_of_memory(failure) ||
               (settings_.also_out_of_memory && settings_.also_out_of_memory(failure));
    }
#endif

    ending call(trial& current) {
        std::size_t updates = 0;
        for (std::size_t calls = 0; updates < settings_.updates; ++calls) {
            if (calls == settings_.updates + skips_allowed) return ending::idle;
            if constexpr (std::is_void_v<std::invoke_result_t<Step&, trial&>>) {
                step_(current);
            } else {
                current.report_peak(static_cast<std::size_t>(step_(current)));
            }
            if (current.is_refused()) return ending::refused;
            updates += current.take_updates();
        }
        return ending::ran;
    }

    std::size_t peak_of(const trial& current) {
        if constexpr (peak_memory_probe<Probe>) {
            return std::max<std::size_t>(probe_.peak_bytes(), current.peak());
        } else {
            return current.peak();
        }
    }

    /// Takes a new reading. Gives true when memory moved that is not this process' own.
    bool observe(bool failed) {
        const reading before = now_;
        now_ = measure();
        if constexpr (peak_memory_probe<Probe>) {
            if (failed) add_not_returned(before.own, now_.own);
            const std::size_t capacity = now_.own + now_.free;
            const bool moved = capacity + settings_.drift < capacity_;
            if (moved) capacity_ = capacity;
            return moved;
        } else {
            if (failed) add_not_returned(now_.free, before.free);
            return false;
        }
    }

    void add_not_returned(std::size_t less, std::size_t more) {
        if (more > less && more - less > settings_.drift) not_returned_ += more - less;
    }

    static void require_peak(const trial& current) {
        if (peak_memory_probe<Probe> || current.has_peak()) return;
        raise(invalid_trial(message(
            "plan_batch: the trial of batch ", current.batch_size(),
            " gave no peak and the probe measures none, expected trial.report_peak(bytes), a step "
            "that returns its peak, or a probe with peak_bytes() such as metered_budget")));
    }

    [[noreturn]] void refuse_idle(const trial& current) const {
        raise(invalid_trial(message("plan_batch: the trial of batch ", current.batch_size(),
                                    " took too few updates in ", settings_.updates + skips_allowed,
                                    " calls, expected ", settings_.updates)));
    }

    Probe& probe_;
    trial_runner_settings settings_;
    Step& step_;
    std::size_t margin_;
    reading now_;
    std::size_t capacity_;
    std::size_t not_returned_ = 0;
    std::size_t count_ = 0;
};

}  // namespace detail

}  // namespace demi::inline DEMI_ABI
