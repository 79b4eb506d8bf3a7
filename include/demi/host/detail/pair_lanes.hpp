// SPDX-License-Identifier: MIT
/// A pack of 16-bit numbers as they lie in memory, two to a lane, for sums of squares and maxima.
#pragma once

#include <demi/host/detail/dispatch.hpp>
#include <demi/host/detail/lane_vectors.hpp>
#include <demi/host/detail/word_lanes.hpp>
#include <demi/host/lanes.hpp>
#include <demi/precision/bfloat16.hpp>
#include <demi/precision/convert.hpp>
#include <demi/precision/float16.hpp>

#include <cstdint>

namespace demi::inline DEMI_ABI {
namespace detail {

/// Whether there are packs of pairs of a format for an instruction set.
template <class Format, host_isa Isa>
inline constexpr bool has_pairs = false;

#if defined(__x86_64__)

template <host_isa Isa>
inline constexpr bool has_pairs<bfloat16, Isa> = true;
template <host_isa Isa>
inline constexpr bool has_pairs<float16, Isa> = Isa != host_isa::portable;

/// Magnitudes of pairs as vectors of integers, in a form that is quick to compare.
template <int Count>
struct pair_magnitudes;

template <>
struct pair_magnitudes<4> {
    using pairs = vector<std::uint16_t, 8>;

    static void load(pairs& to, const void* from) {
        to = pairs(_mm_and_si128(_mm_loadu_si128(static_cast<const __m128i*>(from)),
                                 _mm_set1_epi16(0x7fff)));
    }
    static void max(pairs& to, const pairs& a, const pairs& b) {
        to = pairs(_mm_max_epi16(__m128i(a), __m128i(b)));
    }
    static std::uint32_t largest(const pairs& a) {
        std::uint32_t result = 0;
        for (int i = 0; i < 8; ++i) result = a[i] > result ? a[i] : result;
        return result;
    }
};

/// Twice the magnitudes: to add is quicker than to mask.
template <>
struct pair_magnitudes<8> {
    using pairs = vector<std::uint16_t, 16>;

    [[DEMI_TARGET_AVX2]] static void load(pairs& to, const void* from) {
        to = *static_cast<const vector_of<std::uint16_t, 16>::unaligned*>(from);
        to += to;
    }
    [[DEMI_TARGET_AVX2]] static void max(pairs& to, const pairs& a, const pairs& b) {
        to = pairs(_mm256_max_epu16(__m256i(a), __m256i(b)));
    }
    [[DEMI_TARGET_AVX2]] static std::uint32_t largest(const pairs& a) {
        const __m128i low = _mm256_castsi256_si128(__m256i(a));
        const __m128i eight = _mm_max_epu16(low, _mm256_extracti128_si256(__m256i(a), 1));
        // There is an instruction for the smallest of eight.
        const __m128i smallest = _mm_minpos_epu16(_mm_xor_si128(eight, _mm_set1_epi16(-1)));
        return (~static_cast<std::uint32_t>(_mm_cvtsi128_si32(smallest)) & 0xffffu) / 2;
    }
};

template <>
struct pair_magnitudes<16> {
    using pairs = vector<std::uint16_t, 32>;

    [[DEMI_TARGET_AVX512]] static void load(pairs& to, const void* from) {
        to = *static_cast<const vector_of<std::uint16_t, 32>::unaligned*>(from);
        to += to;
    }
    [[DEMI_TARGET_AVX512]] static void max(pairs& to, const pairs& a, const pairs& b) {
        to = pairs(_mm512_maskz_max_epu16(0xffffffff, __m512i(a), __m512i(b)));
    }
    [[DEMI_TARGET_AVX512]] static std::uint32_t largest(const pairs& a) {
        const __m256i low = _mm512_maskz_extracti64x4_epi64(0xf, __m512i(a), 0);
        const __m256i high = _mm512_maskz_extracti64x4_epi64(0xf, __m512i(a), 1);
        using half = pair_magnitudes<8>;
        return half::largest(half::pairs(_mm256_max_epu16(low, high)));
    }
};

/// Adds the squares of the pairs at an address to the lanes of a sum.
template <class Format, host_isa Isa>
struct pair_squares;

template <host_isa Isa>
struct pair_squares<bfloat16, Isa> {
    static constexpr int count = lane_count<Isa>;

    DEMI_LANE_INLINE static void add(lanes<count>& sum, const void* from) {
        const auto pairs = word_lanes<count>::load(from);
        add_square(sum, (pairs & 0xffff0000u).numbers());
        add_square(sum, (pairs << 16).numbers());
    }
};

/// The instruction takes subnormal numbers, and makes subnormal sums, zero.
template <>
struct pair_squares<bfloat16, host_isa::avx512_bf16> {
    [[DEMI_TARGET_AVX512_BF16]] static void add(lanes<16>& sum, const void* from) {
        const auto pairs = __m512bh(_mm512_loadu_si512(from));
        sum.values() = _mm512_dpbf16_ps(sum.values(), pairs, pairs);
    }
};

template <>
struct pair_squares<float16, host_isa::avx2> {
    [[DEMI_TARGET_AVX2]] static void add(lanes<8>& sum, const void* from) {
        const auto* const halves = static_cast<const __m128i*>(from);
        const __m256 low = _mm256_cvtph_ps(_mm_loadu_si128(halves));
        const __m256 high = _mm256_cvtph_ps(_mm_loadu_si128(halves + 1));
        sum.values() = _mm256_fmadd_ps(high, high, _mm256_fmadd_ps(low, low, sum.values()));
    }
};

template <>
struct pair_squares<float16, host_isa::avx512> {
    [[DEMI_TARGET_AVX512]] static void add(lanes<16>& sum, const void* from) {
        const auto* const halves = static_cast<const __m256i*>(from);
        const __m512 low = _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(halves));
        const __m512 high = _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(halves + 1));
        sum.values() = _mm512_fmadd_ps(high, high, _mm512_fmadd_ps(low, low, sum.values()));
    }
};

template <>
struct pair_squares<float16, host_isa::avx512_bf16> : pair_squares<float16, host_isa::avx512> {};

#endif

/// The magnitudes of a pack of pairs.
template <class Format, host_isa Isa>
class pair_bits {
    using operations = pair_magnitudes<lane_count<Isa>>;

public:
    DEMI_LANE_INLINE pair_bits() : values_{} {}
    DEMI_LANE_INLINE explicit pair_bits(const void* from) { operations::load(values_, from); }
    DEMI_LANE_INLINE pair_bits(const pair_bits& other) : values_(other.values_) {}
    DEMI_LANE_INLINE pair_bits& operator=(const pair_bits& other) {
        return values_ = other.values_, *this;
    }

    DEMI_LANE_INLINE friend pair_bits max(const pair_bits& a, const pair_bits& b) {
        pair_bits result;
        operations::max(result.values_, a.values_, b.values_);
        return result;
    }
    /// The bits of the largest number as a float.
    DEMI_LANE_INLINE friend std::uint32_t max_lanes(const pair_bits& a) {
        const auto largest = static_cast<std::uint16_t>(operations::largest(a.values_));
        return convert_bits<float, Format>(largest, nearest_even{});
    }

private:
    typename operations::pairs values_;
};

/// Numbers of `Format`, twice as many as a pack of floats has. They stay in memory, from where
/// each use takes them in the form that suits it.
template <class Format, host_isa Isa>
class pair_lanes {
public:
    static constexpr int count = 2 * lane_count<Isa>;

    DEMI_LANE_INLINE explicit pair_lanes(const void* from) : from_(from) {}

    DEMI_LANE_INLINE friend void add_square(lanes<lane_count<Isa>>& sum, const pair_lanes& a) {
        pair_squares<Format, Isa>::add(sum, a.from_);
    }
    DEMI_LANE_INLINE friend pair_bits<Format, Isa> magnitude_bits(const pair_lanes& a) {
        return pair_bits<Format, Isa>(a.from_);
    }

private:
    const void* from_;
};

}  // namespace detail

template <class Format, host_isa Isa>
struct real_traits<detail::pair_lanes<Format, Isa>> {
    using narrow = lanes<detail::lane_count<Isa>>;
    using bits = detail::pair_bits<Format, Isa>;
    static constexpr std::uint32_t infinity_bits = 0x7f800000;
};

}  // namespace demi::inline DEMI_ABI
