// SPDX-License-Identifier: MIT
/// A pack of 32-bit words, for conversions made of integer arithmetic.
#pragma once

#include <demi/host/detail/lane_vectors.hpp>
#include <demi/host/detail/stores.hpp>
#include <demi/host/lanes.hpp>

#include <cstdint>

namespace demi::inline DEMI_ABI {
namespace detail {

/// What word_lanes needs beyond operators: to be read from and written to 16-bit memory.
template <int Count>
struct word_operations;

#if defined(__x86_64__)

template <>
struct word_operations<4> {
    using words = vector<std::uint32_t, 4>;

    static void broadcast(words& to, std::uint32_t value) {
        to = words(_mm_set1_epi32(static_cast<int>(value)));
    }
    static void load_halves(words& to, const void* from) {
        to = words(_mm_unpacklo_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(from)),
                                      _mm_setzero_si128()));
    }
    static void store_halves(void* to, const words& from) {
        // SSE2 packs with signed saturation only, which a sign extension makes harmless.
        const __m128i extended = _mm_srai_epi32(_mm_slli_epi32(__m128i(from), 16), 16);
        _mm_storel_epi64(static_cast<__m128i*>(to), _mm_packs_epi32(extended, extended));
    }
};

template <>
struct word_operations<8> {
    using words = vector<std::uint32_t, 8>;

    [[DEMI_TARGET_AVX2]] static void broadcast(words& to, std::uint32_t value) {
        to = words(_mm256_set1_epi32(static_cast<int>(value)));
    }
    [[DEMI_TARGET_AVX2]] static void load_halves(words& to, const void* from) {
        to = words(_mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from))));
    }
    template <class Stores>
    [[DEMI_TARGET_AVX2]] static void store(void* to, const words& from) {
        Stores::store(to, __m256i(from));
    }
    template <class Stores>
    [[DEMI_TARGET_AVX2]] static void store_halves(void* to, const words& from) {
        const __m256i packed = _mm256_packus_epi32(__m256i(from), __m256i(from));
        const __m256i ordered = _mm256_permute4x64_epi64(packed, 0x08);
        Stores::store(to, _mm256_castsi256_si128(ordered));
    }
};

template <>
struct word_operations<16> {
    using words = vector<std::uint32_t, 16>;

    [[DEMI_TARGET_AVX512]] static void broadcast(words& to, std::uint32_t value) {
        to = words(_mm512_set1_epi32(static_cast<int>(value)));
    }
    [[DEMI_TARGET_AVX512]] static void load_halves(words& to, const void* from) {
        const __m256i halves = _mm256_loadu_si256(static_cast<const __m256i*>(from));
        to = words(_mm512_maskz_cvtepu16_epi32(0xffff, halves));
    }
    [[DEMI_TARGET_AVX512]] static void store_halves(void* to, const words& from) {
        _mm256_storeu_si256(static_cast<__m256i*>(to),
                            _mm512_maskz_cvtepi32_epi16(0xffff, __m512i(from)));
    }
};

#else

template <>
struct word_operations<4> {
    using words = vector<std::uint32_t, 4>;

    static void broadcast(words& to, std::uint32_t value) {
        to = words{value, value, value, value};
    }
    static void load_halves(words& to, const void* from) {
        std::uint16_t halves[4];
        __builtin_memcpy(halves, from, sizeof halves);
        to = words{halves[0], halves[1], halves[2], halves[3]};
    }
    static void store_halves(void* to, const words& from) {
        std::uint16_t halves[4];
        for (int i = 0; i < 4; ++i) halves[i] = static_cast<std::uint16_t>(from[i]);
        __builtin_memcpy(to, halves, sizeof halves);
    }
};

#endif

template <int Count>
class word_lanes {
    using operations = word_operations<Count>;
    using unaligned = typename vector_of<std::uint32_t, Count>::unaligned;
    using integers = vector<std::int32_t, Count>;

public:
    DEMI_LANE_INLINE word_lanes(std::uint32_t value) { operations::broadcast(words_, value); }
    DEMI_LANE_INLINE explicit word_lanes(const lanes<Count>& numbers)
        : words_(typename operations::words(numbers.values())) {}
    DEMI_LANE_INLINE word_lanes(const word_lanes& other) : words_(other.words_) {}
    DEMI_LANE_INLINE word_lanes& operator=(const word_lanes& other) {
        return words_ = other.words_, *this;
    }

    /// 0, 1, 2 and so on.
    DEMI_LANE_INLINE static word_lanes ascending() {
        static constexpr std::uint32_t numbers[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                      8, 9, 10, 11, 12, 13, 14, 15};
        return load(numbers);
    }

    DEMI_LANE_INLINE static word_lanes load(const void* from) {
        word_lanes result;
        result.words_ = *static_cast<const unaligned*>(from);
        return result;
    }
    template <class Stores = cached_stores>
    DEMI_LANE_INLINE void store(void* to) const {
        if constexpr (Stores::stream) {
            operations::template store<Stores>(to, words_);
        } else {
            *static_cast<unaligned*>(to) = words_;
        }
    }

    DEMI_LANE_INLINE static word_lanes load_halves(const void* from) {
        word_lanes result;
        operations::load_halves(result.words_, from);
        return result;
    }
    /// Writes words below 2^16.
    template <class Stores = cached_stores>
    DEMI_LANE_INLINE void store_halves(void* to) const {
        if constexpr (Count == 8) {
            operations::template store_halves<Stores>(to, words_);
        } else {
            operations::store_halves(to, words_);
        }
    }

    DEMI_LANE_INLINE friend word_lanes operator+(word_lanes a, const word_lanes& b) {
        return a.words_ += b.words_, a;
    }
    DEMI_LANE_INLINE friend word_lanes operator-(word_lanes a, const word_lanes& b) {
        return a.words_ -= b.words_, a;
    }
    DEMI_LANE_INLINE friend word_lanes operator*(word_lanes a, const word_lanes& b) {
        return a.words_ *= b.words_, a;
    }
    DEMI_LANE_INLINE friend word_lanes operator^(word_lanes a, const word_lanes& b) {
        return a.words_ ^= b.words_, a;
    }
    DEMI_LANE_INLINE friend word_lanes operator&(word_lanes a, const word_lanes& b) {
        return a.words_ &= b.words_, a;
    }
    DEMI_LANE_INLINE friend word_lanes operator|(word_lanes a, const word_lanes& b) {
        return a.words_ |= b.words_, a;
    }
    DEMI_LANE_INLINE friend word_lanes operator>>(word_lanes a, int shift) {
        return a.words_ >>= shift, a;
    }
    DEMI_LANE_INLINE friend word_lanes operator<<(word_lanes a, int shift) {
        return a.words_ <<= shift, a;
    }

    DEMI_LANE_INLINE const typename operations::words& words() const { return words_; }

    /// The floats with these bits.
    DEMI_LANE_INLINE lanes<Count> numbers() const {
        return lanes<Count>(typename lanes<Count>::storage(words_));
    }

    /// All ones where the uppermost bit is set, else zero.
    DEMI_LANE_INLINE friend word_lanes spread_sign(word_lanes a) {
        a.words_ = typename operations::words(integers(a.words_) >> 31);
        return a;
    }

private:
    DEMI_LANE_INLINE word_lanes() : words_{} {}

    typename operations::words words_;
};

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
