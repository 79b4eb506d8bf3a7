// SPDX-License-Identifier: MIT
/// Where the next trial of a batch search goes: the arithmetic behind `batch_search`.
#pragma once

#include <demi/core/config.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace demi::inline DEMI_ABI {

namespace detail {

/// Everything is counted in multiples of the smallest step between sizes; 0 stands for "none".
struct search_limits {
    double budget = 0;
    std::size_t first = 1;
    std::size_t last = 1;
    std::size_t start = 1;
    double tolerance = 0;
    std::size_t growth = 8;
    std::size_t slack = 2;
};

/// The largest fit, the smallest failure above it, and what lies between.
///
/// A proposal is a prediction first. It is then moved, if need be, so that whichever way the trial
/// ends the bracket is no wider than bisection could finish within `slack` trials of what doubling
/// and bisection would have taken.
class search_bracket {
public:
    search_bracket() = default;

    explicit search_bracket(const search_limits& limits) : limits_(limits) {
        // Above 2^53 a double no longer holds every index.
        limits_.last = std::min(limits_.last, std::size_t{1} << 53);
        limits_.start = std::clamp(limits_.start, limits_.first, limits_.last);
        limits_.slack = std::min<std::size_t>(limits_.slack, 64);
    }

    std::size_t lower() const { return lower_.index; }
    std::size_t upper() const { return upper_.index; }
    bool non_monotone() const { return non_monotone_; }
    bool at_last() const { return lower_.index == limits_.last; }
    bool closed() const {
        return lower_.index > 0 && upper_.index > 0 && upper_.index - lower_.index <= step();
    }

    void fit(std::size_t index, double bytes) {
        ++trials_;
        note_peak({index, bytes, true});
        if (upper_.index > 0 && index >= upper_.index) {
            non_monotone_ = true;
        } else if (index > lower_.index) {
            lower_ = {index, bytes, true};
            fits_.push_back(lower_);
            moved();
        }
    }

    /// `bytes` is the peak of a trial that ran; without it nothing is known but the failure.
    void fail(std::size_t index, std::optional<double> bytes) {
        ++trials_;
        const point failure{index, bytes.value_or(0), bytes.has_value()};
        if (bytes) note_peak(failure);
        if (index <= lower_.index) {
            non_monotone_ = true;
        } else if (upper_.index == 0 || index < upper_.index) {
            former_upper_ = upper_;
            upper_ = failure;
            moved();
        }
    }

    /// Requires a search that has not ended.
    std::size_t propose() const {
        if (lower_.index == 0) return upper_.index == 0 ? limits_.start : shrink();
        return upper_.index == 0 ? grow() : narrow();
    }

private:
    struct point {
        std::size_t index = 0;
        double bytes = 0;
        bool measured = false;
    };

    static double real(std::size_t index) { return static_cast<double>(index); }

    static std::size_t clamp(double index, std::size_t low, std::size_t high) {
        if (index <= real(low)) return low;
        if (index >= real(high)) return high;
        return static_cast<std::size_t>(index);
    }

    static std::size_t bit_count(std::uint64_t value) {
        return static_cast<std::size_t>(64 - std::countl_zero(value));
    }

    static std::size_t log2_up(std::size_t value) { return bit_count(value - 1); }

    /// The gap that the tolerance allows between the answer and the smallest failure.
    std::size_t step() const {
        const auto gap = static_cast<std::size_t>(limits_.tolerance * real(lower_.index));
        return std::max<std::size_t>(1, gap);
    }

    void note_peak(const point& now) {
        for (const point& before : peaks_) {
            if ((before.index < now.index && before.bytes > now.bytes) ||
                (before.index > now.index && before.bytes < now.bytes)) {
                non_monotone_ = true;
            }
        }
        peaks_.push_back(now);
    }

    void moved() {
        if (lower_.index == 0 || upper_.index == 0) return;
        if (first_width_ == 0) {
            first_width_ = upper_.index - lower_.index;
        } else {
            ++narrowings_;
        }
    }

    /// Trials that doubling and bisection take when the answer is at the largest fit.
    std::size_t bisection_trials() const {
        if (lower_.index >= limits_.start) {
            const std::size_t doublings = bit_count(lower_.index / limits_.start) - 1;
            return doublings + 2 + log2_up(in_steps(limits_.start << doublings));
        }
        std::size_t halvings = 0;
        std::size_t width = limits_.start;
        for (; width > lower_.index; width /= 2) ++halvings;
        return halvings + 1 + log2_up(in_steps(width));
    }

    std::size_t in_steps(std::size_t width) const {
        return std::max<std::size_t>(1, (width + step() - 1) / step());
    }

    /// The widest bracket that bisection still finishes in time when one more trial has been made.
    double allowed_width() const {
        const auto left =
            static_cast<int>(bisection_trials() + limits_.slack) - static_cast<int>(trials_) - 1;
        return std::ldexp(real(step()), left);
    }

    /// Nothing fits yet.
    std::size_t shrink() const {
        const double budget = limits_.budget;
        double index = real(upper_.index / 2);
        if (upper_.measured && upper_.bytes > budget) {
            index = std::min(index, real(upper_.index) * budget / upper_.bytes);
            if (former_upper_.measured && former_upper_.bytes > upper_.bytes) {
                const double slope =
                    (former_upper_.bytes - upper_.bytes) / real(former_upper_.index - upper_.index);
                index = std::min(index, real(upper_.index) - (upper_.bytes - budget) / slope);
            }
        }
        return clamp(index, std::max(limits_.first, upper_.index / limits_.growth),
                     std::max(limits_.first, upper_.index / 2));
    }

    /// Nothing fails yet.
    std::size_t grow() const {
        const std::size_t low = lower_.index;
        const std::size_t hurry = trials_ > limits_.slack ? trials_ - limits_.slack : 0;
        const double keeping_up = std::ldexp(real(limits_.start), static_cast<int>(hurry));
        const std::size_t least = clamp(std::max(keeping_up, real(low + step())), 1, limits_.last);
        const double farthest = real(low) * real(limits_.growth);
        const double most = std::min(farthest, real(low) + allowed_width());
        return std::max(least, clamp(std::min(line_ahead(), most), 1, limits_.last));
    }

    /// The index at which the line through two fits meets the budget. The second one is not too
    /// close to the largest: over a short distance allocation steps look like a flat or steep
    /// curve.
    double line_ahead() const {
        const double low = real(lower_.index);
        const double farthest = low * real(limits_.growth);
        if (fits_.size() == 1) {
            if (lower_.bytes <= 0) return farthest;
            const double room = limits_.budget / lower_.bytes;
            return low * std::min(std::sqrt(real(limits_.growth) * room), 1 + 8 * (room - 1));
        }
        point base = fits_.front();
        for (const point& fit : fits_) {
            if (real(fit.index) <= 0.9 * low && fit.bytes < lower_.bytes) base = fit;
        }
        if (base.bytes > lower_.bytes) return 2 * low;
        if (base.bytes == lower_.bytes) return farthest;
        const double slope = (lower_.bytes - base.bytes) / (low - real(base.index));
        return low + (limits_.budget - lower_.bytes) / slope;
    }

    std::size_t narrow() const {
        const std::size_t low = lower_.index;
        const std::size_t high = upper_.index;
        double index = line_between();
        const std::size_t gap = step();
        if (high - low > 2 * gap) index = std::clamp(index, real(low + gap), real(high - gap));
        const double by_bracket =
            std::ldexp(real(first_width_),
                       static_cast<int>(limits_.slack) - static_cast<int>(narrowings_) - 1);
        const double width = std::min(by_bracket, allowed_width());
        const double from = std::ceil(real(high) - width);
        const double to = std::floor(real(low) + width);
        if (from > to) return low + (high - low) / 2;
        return clamp(std::clamp(index, from, to), low + 1, high - 1);
    }

    double line_between() const {
        const double low = real(lower_.index);
        const double high = real(upper_.index);
        if (upper_.measured && upper_.bytes > lower_.bytes) {
            const double slope = (upper_.bytes - lower_.bytes) / (high - low);
            return std::floor(low + (limits_.budget - lower_.bytes) / slope);
        }
        if (fits_.size() > 1) {
            const double ahead = std::floor(line_ahead());
            if (ahead < high) return ahead;
        }
        // The middle in proportion, while the bracket spans orders of magnitude.
        return high > 2 * low ? std::sqrt(low * high) : low + (high - low) / 2;
    }

    search_limits limits_;
    point lower_;
    point upper_;
    point former_upper_;
    std::vector<point> fits_;
    std::vector<point> peaks_;
    bool non_monotone_ = false;
    std::size_t trials_ = 0;
    std::size_t first_width_ = 0;
    std::size_t narrowings_ = 0;
};

}  // namespace detail

}  // namespace demi::inline DEMI_ABI
