// SPDX-License-Identifier: MIT
/// What the batch planner asks about memory, and the probes that need no operating system.
#pragma once

#include <demi/core/error.hpp>
#include <demi/profiling/memory_meter.hpp>

#include <concepts>
#include <cstddef>
#include <utility>

namespace demi::inline DEMI_ABI {

/// Something that tells how much memory there is. A model `P` provides
///
/// 1. `free_bytes()`: what can be taken from now on, by this process. It is asked between trials.
/// 2. `total_bytes()`: what there is for everybody, never less than `free_bytes()`.
///
/// Optional: `std::size_t suggested_margin() const`, the bytes that a plan leaves unused when the
/// user says nothing. A probe of physical memory has one; a budget that the user states has none.
template <class P>
concept memory_probe = requires(P& probe) {
    { probe.free_bytes() } -> std::convertible_to<std::size_t>;
    { probe.total_bytes() } -> std::convertible_to<std::size_t>;
};

/// A probe that measures this process' own use, so that a trial need not report its peak. Adds
///
/// 3. `reset_peak()`: the peak starts again from what this process uses now.
/// 4. `peak_bytes()`: the most that this process used at one time since then. What others use does
///    not count: it lowers `free_bytes()` only, so that free plus own bytes stay the same while
///    nobody else moves.
template <class P>
concept peak_memory_probe = memory_probe<P> && requires(P& probe) {
    probe.reset_peak();
    { probe.peak_bytes() } -> std::convertible_to<std::size_t>;
};

/// A probe that can clean up. Adds
///
/// 5. `recover()`: called after each failed trial, when its exception is gone: clear the runtime's
///    last error, synchronise, trim pools.
template <class P>
concept recovering_memory_probe = memory_probe<P> && requires(P& probe) {
    probe.recover();
};

/// A number of bytes that the user states. Each trial reports its own peak.
struct fixed_budget {
    std::size_t bytes = 0;

    std::size_t free_bytes() const noexcept { return bytes; }
    std::size_t total_bytes() const noexcept { return bytes; }
};
static_assert(memory_probe<fixed_budget>);

/// A number of bytes that the user states for everything that comes from one `memory_meter`, which
/// measures the peaks. The meter has to outlive the probe.
class metered_budget {
public:
    metered_budget(memory_meter& meter, std::size_t bytes) : meter_(&meter), bytes_(bytes) {}

    std::size_t free_bytes() const noexcept {
        const std::size_t used = meter_->current();
        return used < bytes_ ? bytes_ - used : 0;
    }
    std::size_t total_bytes() const noexcept { return bytes_; }
    void reset_peak() noexcept { meter_->reset_peak(); }
    std::size_t peak_bytes() const noexcept { return meter_->peak(); }

private:
    memory_meter* meter_;
    std::size_t bytes_;
};
static_assert(peak_memory_probe<metered_budget>);

/// Free memory from one probe, such as `host_memory`, and peaks from a `memory_meter`, which has to
/// outlive it.
template <memory_probe Probe>
class metered_probe {
public:
    metered_probe(memory_meter& meter, Probe probe) : meter_(&meter), probe_(std::move(probe)) {}

    std::size_t free_bytes() { return probe_.free_bytes(); }
    std::size_t total_bytes() { return probe_.total_bytes(); }
    void reset_peak() noexcept { meter_->reset_peak(); }
    std::size_t peak_bytes() const noexcept { return meter_->peak(); }
    std::size_t suggested_margin() const requires requires(const Probe& probe) {
        probe.suggested_margin();
    }
    { return probe_.suggested_margin(); }
    void recover() requires recovering_memory_probe<Probe> { probe_.recover(); }

private:
    memory_meter* meter_;
    Probe probe_;
};
static_assert(peak_memory_probe<metered_probe<fixed_budget>>);

/// The margin of a probe, 0 when it suggests none.
template <memory_probe Probe>
std::size_t suggested_margin(Probe& probe) {
    if constexpr (requires { probe.suggested_margin(); }) {
        return probe.suggested_margin();
    } else {
        return 0;
    }
}

}  // namespace demi::inline DEMI_ABI
