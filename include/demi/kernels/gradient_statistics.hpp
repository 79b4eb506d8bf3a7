// SPDX-License-Identifier: MIT
/// One read-only pass over gradients: are they finite, how large are they, and what is wrong where.
#pragma once

#include <demi/core/real.hpp>
#include <demi/kernels/reduce.hpp>
#include <demi/precision/format_traits.hpp>

#include <cstdint>

namespace demi::inline DEMI_ABI {

enum class non_finite : std::uint8_t { none, nan, plus_infinity, minus_infinity };

constexpr const char* name(non_finite kind) {
    switch (kind) {
        case non_finite::nan:
            return "NaN";
        case non_finite::plus_infinity:
            return "+infinity";
        case non_finite::minus_infinity:
            return "-infinity";
        default:
            return "finite";
    }
}

/// What one pass learns about gradients, in the units in which they are stored.
struct gradient_statistics {
    /// Not a number to use unless `finite()`. Summed in double: squares of floats cannot overflow.
    double sum_of_squares = 0;
    /// The largest magnitude among the finite values.
    double largest_magnitude = 0;
    std::uint64_t nan_count = 0;
    std::uint64_t infinity_count = 0;
    /// The first value in list order that is not finite; meaningful unless `finite()`.
    element_position first_non_finite{};
    non_finite first_kind = non_finite::none;

    DEMI_HD constexpr bool finite() const { return first_kind == non_finite::none; }
};

/// Joins what was learned about two parts of the gradients.
DEMI_HD constexpr gradient_statistics merge(const gradient_statistics& left,
                                            const gradient_statistics& right) {
    const bool left_first =
        right.finite() || (!left.finite() && left.first_non_finite < right.first_non_finite);
    // Member by member: a reference to one of the two would keep both in memory on a device.
    return {left.sum_of_squares + right.sum_of_squares,
            demi::max(left.largest_magnitude, right.largest_magnitude),
            left.nan_count + right.nan_count,
            left.infinity_count + right.infinity_count,
            {left_first ? left.first_non_finite.tensor : right.first_non_finite.tensor,
             left_first ? left.first_non_finite.index : right.first_non_finite.index},
            left_first ? left.first_kind : right.first_kind};
}

/// The reducer that gathers `gradient_statistics`.
///
/// The fast path keeps a sum and an integer maximum; only a block in which that maximum is not
/// finite is looked at again, element by element.
struct gradient_reducer {
    using value_type = gradient_statistics;

    template <class Real>
    struct partial {
        typename real_traits<Real>::wide sum_of_squares{};
        typename real_traits<Real>::bits largest_bits{};
    };

    template <class Real>
    DEMI_HD void accumulate(partial<Real>& into, const Real& value) const {
        const auto exact = widen(value);
        into.sum_of_squares = into.sum_of_squares + exact * exact;
        into.largest_bits = max(into.largest_bits, magnitude_bits(value));
    }

    template <class Real>
    DEMI_HD void join(partial<Real>& into, const partial<Real>& other) const {
        into.sum_of_squares = into.sum_of_squares + other.sum_of_squares;
        into.largest_bits = max(into.largest_bits, other.largest_bits);
    }

    template <class Real>
    DEMI_HD value_type finish(const partial<Real>& from) const {
        const auto largest = max_lanes(from.largest_bits);
        value_type result;
        result.sum_of_squares = sum_lanes(from.sum_of_squares);
        if (largest >= real_traits<Real>::infinity_bits) {
            result.first_kind = non_finite::nan;
        } else {
            result.largest_magnitude = value_of(largest);
        }
        return result;
    }

    DEMI_HD value_type combine(const value_type& left, const value_type& right) const {
        return merge(left, right);
    }

    DEMI_HD bool wants_inspection(const value_type& block) const { return !block.finite(); }

    template <scalar_real Real>
    DEMI_HD void inspect(value_type& block, element_position at, Real value) const {
        if (is_finite(value)) {
            block.largest_magnitude = demi::max(block.largest_magnitude, widen(abs(value)));
            return;
        }
        const non_finite kind = is_nan(value) ? non_finite::nan
                                : magnitude_bits(value) == to_bits(value)
                                    ? non_finite::plus_infinity
                                    : non_finite::minus_infinity;
        if (block.nan_count + block.infinity_count == 0) {
            block.first_non_finite = at;
            block.first_kind = kind;
        }
        ++(kind == non_finite::nan ? block.nan_count : block.infinity_count);
    }

private:
    DEMI_HD static double value_of(std::uint32_t bits) {
        return static_cast<double>(__builtin_bit_cast(float, bits));
    }
    DEMI_HD static double value_of(std::uint64_t bits) { return __builtin_bit_cast(double, bits); }
};

/// Learns in one pass whether gradients are finite, their norm, and where the first bad value is.
///
/// Cost: reads every gradient once, writes none; waits for the backend.
template <backend B, tensor_source Gradients>
gradient_statistics measure_gradients(const B& where, Gradients&& gradients) {
    const tensor_list<const std::remove_const_t<element_of<Gradients>>> list(gradients);
    return demi::reduce(where, gradient_reducer{}, in(list));
}

}  // namespace demi::inline DEMI_ABI
