// SPDX-License-Identifier: MIT
/// Packs of floats that a scalar functor takes for one number.
///
/// The functions follow core/real.hpp and are found by argument-dependent lookup. The copy
/// constructors are user-provided on purpose: the packs are then passed by reference behind the
/// scenes, so that code compiled without their instruction set can hand them around.
#pragma once

#include <demi/core/real.hpp>
#include <demi/host/detail/lane_vectors.hpp>

#include <cstdint>

// Functions for device code may not be called with vectors, not even on the host.
#if defined(__CUDACC__)
#error "demi's host kernels need a host compiler: in .cu sources include demi/demi_cuda.cuh"
#endif

namespace demi::inline DEMI_ABI {

/// What a comparison of packs gives: one truth value per lane. `&&` and `||` evaluate both sides;
/// they are here so that one text serves masks and `bool`.
template <int Count>
class lane_mask {
public:
    using storage = typename detail::vector_operations<Count>::mask;

    DEMI_LANE_INLINE lane_mask() : values_{} {}
    DEMI_LANE_INLINE lane_mask(const lane_mask& other) : values_(other.values_) {}
    DEMI_LANE_INLINE lane_mask& operator=(const lane_mask& other) {
        values_ = other.values_;
        return *this;
    }

    DEMI_LANE_INLINE friend lane_mask operator&&(lane_mask a, const lane_mask& b) {
        a.values_ &= b.values_;
        return a;
    }
    DEMI_LANE_INLINE friend lane_mask operator||(lane_mask a, const lane_mask& b) {
        a.values_ |= b.values_;
        return a;
    }
    DEMI_LANE_INLINE friend lane_mask operator!(lane_mask a) {
        a.values_ = static_cast<storage>(~a.values_);
        return a;
    }

    DEMI_LANE_INLINE storage& values() { return values_; }
    DEMI_LANE_INLINE const storage& values() const { return values_; }

private:
    storage values_;
};

/// `Count` floats: 16 with AVX-512, 8 with AVX2, 4 elsewhere. A float converts to a pack of itself.
template <int Count>
class lanes {
    using operations = detail::vector_operations<Count>;
    using mask = lane_mask<Count>;
    using unaligned = typename detail::vector_of<float, Count>::unaligned;

public:
    using storage = typename operations::floats;
    static constexpr int count = Count;

    DEMI_LANE_INLINE lanes() : values_{} {}
    DEMI_LANE_INLINE lanes(float value) { operations::broadcast(values_, value); }
    DEMI_LANE_INLINE explicit lanes(const storage& values) : values_(values) {}
    DEMI_LANE_INLINE lanes(const lanes& other) : values_(other.values_) {}
    DEMI_LANE_INLINE lanes& operator=(const lanes& other) {
        values_ = other.values_;
        return *this;
    }

    /// Reads `Count` floats at any address.
    DEMI_LANE_INLINE static lanes load(const float* from) {
        lanes result;
        result.values_ = *reinterpret_cast<const unaligned*>(from);
        return result;
    }
    DEMI_LANE_INLINE void store(float* to) const { *reinterpret_cast<unaligned*>(to) = values_; }

    DEMI_LANE_INLINE lanes& operator+=(const lanes& b) { return values_ += b.values_, *this; }
    DEMI_LANE_INLINE lanes& operator-=(const lanes& b) { return values_ -= b.values_, *this; }
    DEMI_LANE_INLINE lanes& operator*=(const lanes& b) { return values_ *= b.values_, *this; }
    DEMI_LANE_INLINE lanes& operator/=(const lanes& b) { return values_ /= b.values_, *this; }
    DEMI_LANE_INLINE friend lanes operator+(lanes a, const lanes& b) { return a += b; }
    DEMI_LANE_INLINE friend lanes operator-(lanes a, const lanes& b) { return a -= b; }
    DEMI_LANE_INLINE friend lanes operator*(lanes a, const lanes& b) { return a *= b; }
    DEMI_LANE_INLINE friend lanes operator/(lanes a, const lanes& b) { return a /= b; }
    DEMI_LANE_INLINE friend lanes operator+(const lanes& a) { return a; }
    DEMI_LANE_INLINE friend lanes operator-(lanes a) { return a.values_ = -a.values_, a; }

    DEMI_LANE_INLINE friend mask operator==(const lanes& a, const lanes& b) {
        return compare<detail::comparison::equal>(a, b);
    }
    DEMI_LANE_INLINE friend mask operator!=(const lanes& a, const lanes& b) {
        return compare<detail::comparison::not_equal>(a, b);
    }
    DEMI_LANE_INLINE friend mask operator<(const lanes& a, const lanes& b) {
        return compare<detail::comparison::less>(a, b);
    }
    DEMI_LANE_INLINE friend mask operator<=(const lanes& a, const lanes& b) {
        return compare<detail::comparison::less_equal>(a, b);
    }
    DEMI_LANE_INLINE friend mask operator>(const lanes& a, const lanes& b) { return b < a; }
    DEMI_LANE_INLINE friend mask operator>=(const lanes& a, const lanes& b) { return b <= a; }

    DEMI_LANE_INLINE friend lanes sqrt(const lanes& a) {
        lanes result;
        operations::sqrt(result.values_, a.values_);
        return result;
    }
    DEMI_LANE_INLINE friend lanes abs(lanes a) {
        a.values_ = storage(typename operations::integers(a.values_) & 0x7fffffff);
        return a;
    }
    DEMI_LANE_INLINE friend lanes min(const lanes& a, const lanes& b) {
        lanes result;
        operations::min(result.values_, a.values_, b.values_);
        return result;
    }
    DEMI_LANE_INLINE friend lanes max(const lanes& a, const lanes& b) {
        lanes result;
        operations::max(result.values_, a.values_, b.values_);
        return result;
    }
    DEMI_LANE_INLINE friend void add_square(lanes& sum, const lanes& a) {
        operations::add_square(sum.values_, a.values_);
    }
    DEMI_LANE_INLINE friend lanes select(const mask& condition, const lanes& if_true,
                                         const lanes& if_false) {
        lanes result;
        operations::select(result.values_, condition.values(), if_true.values_, if_false.values_);
        return result;
    }

    DEMI_LANE_INLINE storage& values() { return values_; }
    DEMI_LANE_INLINE const storage& values() const { return values_; }

private:
    template <detail::comparison Kind>
    DEMI_LANE_INLINE static mask compare(const lanes& a, const lanes& b) {
        mask result;
        operations::template compare<Kind>(result.values(), a.values_, b.values_);
        return result;
    }

    storage values_;
};

/// The lanes of a pack as doubles, for sums.
template <int Count>
class wide_lanes {
    using operations = detail::vector_operations<Count>;

public:
    using storage = typename operations::doubles;

    DEMI_LANE_INLINE wide_lanes() : low_{}, high_{} {}
    DEMI_LANE_INLINE wide_lanes(double value) {
        operations::broadcast(low_, value);
        operations::broadcast(high_, value);
    }
    DEMI_LANE_INLINE explicit wide_lanes(const lanes<Count>& narrow) {
        operations::widen(low_, high_, narrow.values());
    }
    DEMI_LANE_INLINE wide_lanes(const wide_lanes& other) : low_(other.low_), high_(other.high_) {}
    DEMI_LANE_INLINE wide_lanes& operator=(const wide_lanes& other) {
        return low_ = other.low_, high_ = other.high_, *this;
    }

    DEMI_LANE_INLINE wide_lanes& operator+=(const wide_lanes& b) {
        return low_ += b.low_, high_ += b.high_, *this;
    }
    DEMI_LANE_INLINE wide_lanes& operator-=(const wide_lanes& b) {
        return low_ -= b.low_, high_ -= b.high_, *this;
    }
    DEMI_LANE_INLINE wide_lanes& operator*=(const wide_lanes& b) {
        return low_ *= b.low_, high_ *= b.high_, *this;
    }
    DEMI_LANE_INLINE friend wide_lanes operator+(wide_lanes a, const wide_lanes& b) {
        return a += b;
    }
    DEMI_LANE_INLINE friend wide_lanes operator-(wide_lanes a, const wide_lanes& b) {
        return a -= b;
    }
    DEMI_LANE_INLINE friend wide_lanes operator*(wide_lanes a, const wide_lanes& b) {
        return a *= b;
    }

    /// Adds the lanes: halves, halves of those and so on.
    DEMI_LANE_INLINE friend double sum_lanes(const wide_lanes& a) {
        return operations::sum(a.low_ + a.high_);
    }

private:
    storage low_, high_;
};

/// The bits of the magnitudes of a pack, without the sign, in a form that is quick to compare.
template <int Count>
class bit_lanes {
    using operations = detail::vector_operations<Count>;

public:
    using storage = typename operations::integers;

    DEMI_LANE_INLINE bit_lanes() : values_{} {}
    DEMI_LANE_INLINE explicit bit_lanes(const lanes<Count>& numbers) {
        operations::magnitudes(values_, numbers.values());
    }
    DEMI_LANE_INLINE bit_lanes(const bit_lanes& other) : values_(other.values_) {}
    DEMI_LANE_INLINE bit_lanes& operator=(const bit_lanes& other) {
        return values_ = other.values_, *this;
    }

    DEMI_LANE_INLINE friend bit_lanes max(const bit_lanes& a, const bit_lanes& b) {
        bit_lanes result;
        operations::max(result.values_, a.values_, b.values_);
        return result;
    }
    DEMI_LANE_INLINE friend lane_mask<Count> operator<(const bit_lanes& a, std::uint32_t limit) {
        lane_mask<Count> result;
        operations::less(result.values(), a.values_, static_cast<std::int32_t>(limit));
        return result;
    }
    DEMI_LANE_INLINE friend std::uint32_t max_lanes(const bit_lanes& a) {
        return operations::largest(a.values_);
    }

private:
    storage values_;
};

template <int Count>
struct real_traits<lanes<Count>> {
    using wide = wide_lanes<Count>;
    using narrow = lanes<Count>;
    using bits = bit_lanes<Count>;
    static constexpr std::uint32_t infinity_bits = 0x7f800000;
};

template <int Count>
DEMI_LANE_INLINE inline wide_lanes<Count> widen(const lanes<Count>& value) {
    return wide_lanes<Count>(value);
}

template <int Count>
DEMI_LANE_INLINE inline double sum_lanes(const lanes<Count>& value) {
    return sum_lanes(widen(value));
}

template <int Count>
DEMI_LANE_INLINE inline bit_lanes<Count> magnitude_bits(const lanes<Count>& value) {
    return bit_lanes<Count>(value);
}

template <int Count>
DEMI_LANE_INLINE inline lane_mask<Count> is_finite(const lanes<Count>& value) {
    return magnitude_bits(value) < real_traits<lanes<Count>>::infinity_bits;
}

template <int Count>
DEMI_LANE_INLINE inline lane_mask<Count> is_nan(const lanes<Count>& value) {
    return !(magnitude_bits(value) < real_traits<lanes<Count>>::infinity_bits + 1);
}

}  // namespace demi::inline DEMI_ABI
