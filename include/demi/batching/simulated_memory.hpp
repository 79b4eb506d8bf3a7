// SPDX-License-Identifier: MIT
/// Memory that is only simulated, for testing plans without the hardware.
#pragma once

#include <demi/batching/memory_probe.hpp>
#include <demi/core/error.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace demi::inline DEMI_ABI {

struct simulated_memory_settings {
    /// Bytes of the device.
    std::size_t capacity = 0;
    /// Each step needs up to this much more than the curve says.
    std::size_t noise = 0;
    std::uint64_t seed = 0;
    /// Bytes that somebody else takes at step `co_tenant_step` (counted from 1; 0: from the start).
    std::size_t co_tenant = 0;
    std::size_t co_tenant_step = 0;
    /// Bytes that each failed step loses for good.
    std::size_t leak_per_failure = 0;
    /// Bytes that stay allocated from step `late_step` on, as optimizer states do.
    std::size_t late_bytes = 0;
    std::size_t late_step = 2;
};

/// A device whose memory follows a curve: `curve(batch_size)` is the peak in bytes of one step.
/// Everything is deterministic. Models `peak_memory_probe`.
template <class Curve>
    requires std::invocable<const Curve&, std::size_t>
class simulated_memory {
public:
    simulated_memory(Curve curve, const simulated_memory_settings& settings)
        : curve_(std::move(curve)), settings_(settings) {}

    std::size_t free_bytes() const {
        return settings_.capacity - std::min(settings_.capacity, taken_by_others() + resident_);
    }
    std::size_t total_bytes() const { return settings_.capacity; }
    void reset_peak() { peak_ = resident_; }
    std::size_t peak_bytes() const { return peak_; }

    /// Runs one training step. Throws `out_of_memory` when it needs more than there is.
    void step(std::size_t batch_size) {
        const std::size_t needed = try_step(batch_size);
        if (needed == 0) return;
        detail::raise(out_of_memory(
            detail::message("simulated_memory: out of memory: batch ", batch_size, " needs ",
                            needed, " bytes, expected at most ", available()),
            needed));
    }

    /// The same without an exception: gives 0 when the step ran, or the bytes that it needed.
    std::size_t try_step(std::size_t batch_size) {
        ++steps_;
        if (steps_ == settings_.late_step) resident_ += settings_.late_bytes;
        const std::size_t needed =
            resident_ + static_cast<std::size_t>(curve_(batch_size)) + next_noise();
        if (needed > available()) {
            peak_ = std::max(peak_, resident_);
            resident_ += settings_.leak_per_failure;
            return needed;
        }
        peak_ = std::max(peak_, needed);
        return 0;
    }

    /// Steps tried so far.
    std::size_t steps() const { return steps_; }

private:
    std::size_t taken_by_others() const {
        return steps_ >= settings_.co_tenant_step ? settings_.co_tenant : 0;
    }

    std::size_t available() const {
        return settings_.capacity - std::min(settings_.capacity, taken_by_others());
    }

    /// A splitmix64 draw from the seed and the step number.
    std::size_t next_noise() const {
        if (settings_.noise == 0) return 0;
        std::uint64_t bits = settings_.seed + 0x9e3779b97f4a7c15u * steps_;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
        bits ^= bits >> 31;
        return bits % (settings_.noise + 1);
    }

    Curve curve_;
    simulated_memory_settings settings_;
    std::size_t resident_ = 0;
    std::size_t peak_ = 0;
    std::size_t steps_ = 0;
};
static_assert(peak_memory_probe<simulated_memory<std::size_t (*)(std::size_t)>>);

}  // namespace demi::inline DEMI_ABI
