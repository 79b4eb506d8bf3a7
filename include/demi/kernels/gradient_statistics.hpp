// SPDX-License-Identifier: MIT
/// One read-only pass over gradients: are they finite, how large are they, and what is wrong where.
#pragma once

#include <demi/core/real.hpp>
#include <demi/kernels/reduce.hpp>
#include <demi/precision/format_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

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
    /// Not a number to use unless `finite()`. It does not overflow; see `gradient_reducer`.
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

namespace detail {

/// Magnitudes order as their bits do; compilers compare those without a jump, which would often be
/// mispredicted.
DEMI_HD constexpr double larger_magnitude(double left, double right) {
    return __builtin_bit_cast(double, demi::max(__builtin_bit_cast(std::uint64_t, left),
                                                __builtin_bit_cast(std::uint64_t, right)));
}

}  // namespace detail

/// Joins what was learned about two parts of the gradients.
DEMI_HD constexpr gradient_statistics merge(const gradient_statistics& left,
                                            const gradient_statistics& right) {
    gradient_statistics both = left;
    both.sum_of_squares += right.sum_of_squares;
    both.largest_magnitude =
        detail::larger_magnitude(left.largest_magnitude, right.largest_magnitude);
    if (!right.finite()) {
        both.nan_count += right.nan_count;
        both.infinity_count += right.infinity_count;
        if (left.finite() || right.first_non_finite < left.first_non_finite) {
            both.first_non_finite = right.first_non_finite;
            both.first_kind = right.first_kind;
        }
    }
    return both;
}

namespace detail {

/// What a reducer of `gradient_statistics` keeps: a sum and an integer maximum.
template <class Sum, class Bits>
struct partial_statistics {
    Sum sum_of_squares{};
    Bits largest_bits{};
};

DEMI_HD inline double value_of_bits(std::uint32_t bits) {
    return static_cast<double>(__builtin_bit_cast(float, bits));
}
DEMI_HD inline double value_of_bits(std::uint64_t bits) { return __builtin_bit_cast(double, bits); }

template <class Real, class Sum, class Bits>
DEMI_HD gradient_statistics finish_statistics(const partial_statistics<Sum, Bits>& from) {
    const auto largest = max_lanes(from.largest_bits);
    gradient_statistics result;
    result.sum_of_squares = sum_lanes(from.sum_of_squares);
    if (largest >= real_traits<Real>::infinity_bits) {
        result.first_kind = non_finite::nan;
    } else {
        result.largest_magnitude = value_of_bits(largest);
    }
    return result;
}

}  // namespace detail

/// Gathers the statistics of a block with squares summed in their own number type.
struct quick_gradient_reducer {
    using value_type = gradient_statistics;

    template <class Real>
    struct partial : detail::partial_statistics<typename real_traits<Real>::narrow,
                                                typename real_traits<Real>::bits> {};

    template <class Real>
    DEMI_HD void accumulate(partial<Real>& into, const Real& value) const {
        add_square(into.sum_of_squares, value);
        into.largest_bits = max(into.largest_bits, magnitude_bits(value));
    }

    template <class Real>
    DEMI_HD void join(partial<Real>& into, const partial<Real>& other) const {
        into.sum_of_squares = into.sum_of_squares + other.sum_of_squares;
        into.largest_bits = max(into.largest_bits, other.largest_bits);
    }

    template <class Real>
    DEMI_HD value_type finish(const partial<Real>& from) const {
        return detail::finish_statistics<Real>(from);
    }

    DEMI_HD value_type combine(const value_type& left, const value_type& right) const {
        return merge(left, right);
    }
};

/// The reducer that gathers `gradient_statistics`.
///
/// Only a block in which the integer maximum is not finite is looked at again, element by element.
///
/// Accuracy: the relative error of `sum_of_squares` is below 2^-18, that of its root, the norm,
/// below 2^-19, whatever the values; typically it is a hundredth of that. A sum of squares of at
/// most 16 elements, or pairs of elements, per lane is kept in float, where each addition loses at
/// most 2^-24 of it, and all else in double. That holds where the block's largest magnitude lies
/// between the `quick` bounds: no square overflows, and all that underflow together, flushed to
/// zero or not, are less than 2^-28 of the sum. Other blocks are summed in double throughout.
struct gradient_reducer {
    using value_type = gradient_statistics;
    using quick = quick_gradient_reducer;

    static constexpr double smallest_quick = 0x1p-44;
    static constexpr double largest_quick = 0x1p58;

    template <class Real>
    struct partial : detail::partial_statistics<typename real_traits<Real>::wide,
                                                typename real_traits<Real>::bits> {};

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
        return detail::finish_statistics<Real>(from);
    }

    DEMI_HD bool confirms(const value_type& block) const {
        const double largest = block.largest_magnitude;
        return block.finite() &&
               (largest == 0 || (largest >= smallest_quick && largest <= largest_quick));
    }

    template <scalar_real Real>
    DEMI_HD bool absorb(partial<Real>& into, const quick::partial<Real>& few) const {
        const auto largest = few.largest_bits;
        const bool within = largest >= to_bits(static_cast<Real>(smallest_quick)) &&
                            largest <= to_bits(static_cast<Real>(largest_quick));
        if (largest != 0 && !within) return false;
        into.sum_of_squares += widen(few.sum_of_squares);
        into.largest_bits = max(into.largest_bits, largest);
        return true;
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
};

/// Learns in one pass whether gradients are finite, their norm, and where the first bad value is.
///
/// Cost: reads every gradient once, writes none; waits for the backend.
template <backend B, tensor_source Gradients>
gradient_statistics measure_gradients(const B& where, Gradients&& gradients) {
    const tensor_list<const std::remove_const_t<element_of<Gradients>>> list(gradients);
    return demi::reduce(where, gradient_reducer{}, in(list));
}

/// The same for each tensor by itself: its largest magnitude, its norm, its counts, and the first
/// bad value with the tensor's place in the list. `reduce_each` with a `gradient_reducer` leaves
/// them in the backend's memory, and does not wait.
///
/// Cost: reads every gradient once, writes none; waits once.
template <backend B, tensor_source Gradients>
std::vector<gradient_statistics> measure_each_gradient(const B& where, Gradients&& gradients) {
    const tensor_list<const std::remove_const_t<element_of<Gradients>>> list(gradients);
    auto values = where.template make_buffer<gradient_statistics>(list.size());
    demi::reduce_each(where, values.data(), gradient_reducer{}, in(list));
    std::vector<gradient_statistics> found(list.size());
    where.download(values.data(), found.data(), found.size());
    return found;
}

}  // namespace demi::inline DEMI_ABI
