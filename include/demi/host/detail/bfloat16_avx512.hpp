// SPDX-License-Identifier: MIT
/// Blocks of bfloat16 and float with AVX-512: 32 numbers are rounded at a time, as 16-bit words.
#pragma once

#include <demi/host/detail/bfloat16_block.hpp>
#include <demi/host/detail/stores.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI {
namespace detail {

#if defined(__x86_64__)

// The forms with a full mask keep g++ from warning about its own header.
// Without optimisation g++ has macros for some instructions, and warns about their masks here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Woverflow"

template <>
struct bfloat16_block<host_isa::avx512> {
    template <class To, class From, class Rounding>
    static constexpr bool converts = is_bfloat16_conversion<To, From>;

    template <class Stores, class Half, class Rounding>
    [[DEMI_TARGET_AVX512]] static void convert(const float* from, Half* to, std::size_t count,
                                               const block_rounding<Rounding>& rounding) {
        const splitter halves;
        std::size_t i = 0;
        for (; i + 32 <= count; i += 32) {
            const __m512i low = _mm512_loadu_si512(from + i);
            const __m512i high = _mm512_loadu_si512(from + i + 16);
            Stores::store(to + i, round(low, high, halves, rounding, i));
        }
        if (i == count) return;
        const std::uint32_t rest = (std::uint32_t{1} << (count - i)) - 1;
        const auto low_rest = static_cast<std::uint16_t>(rest);
        const auto high_rest = static_cast<std::uint16_t>(rest >> 16);
        const __m512i low = _mm512_maskz_loadu_epi32(low_rest, from + i);
        // The address is not used without a lane, but it should be one of the array.
        const float* next = high_rest != 0 ? from + i + 16 : from + i;
        const __m512i high = _mm512_maskz_loadu_epi32(high_rest, next);
        _mm512_mask_storeu_epi16(to + i, rest, round(low, high, halves, rounding, i));
    }

    template <class Stores, class Half, class Rounding>
    [[DEMI_TARGET_AVX512]] static void convert(const Half* from, float* to, std::size_t count,
                                               const block_rounding<Rounding>&) {
        std::size_t i = 0;
        if (crosses_lines<Stores>(to)) {
            i = elements_before_line(to, count);
            if (i != 0) widen_first(from, to, i);
        }
        // Two at a time: one step after the other would not keep up with the stores.
        for (; i + 32 <= count; i += 32) {
            const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
            const __m256i high =
                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i + 16));
            Stores::store(to + i, _mm512_castps_si512(widen_halves(low)));
            Stores::store(to + i + 16, _mm512_castps_si512(widen_halves(high)));
        }
        for (; i < count; i += 16) widen_first(from + i, to + i, count - i);
    }

    /// Rounds with the instruction made for it, but for blocks with a subnormal: those it flushes.
    template <class Half>
    [[DEMI_TARGET_AVX512_BF16]] static void convert_natively(const float* from, Half* to,
                                                             std::size_t count) {
        const splitter halves;
        const block_rounding<nearest_even> rounding({});
        const std::size_t end = count - count % 32;
        for (std::size_t i = 0; i < end; i += 32) {
            const __m512i low = _mm512_loadu_si512(from + i);
            const __m512i high = _mm512_loadu_si512(from + i + 16);
            __m512i result = __m512i(_mm512_maskz_cvtne2ps_pbh(
                0xffffffff, _mm512_castsi512_ps(high), _mm512_castsi512_ps(low)));
            const __mmask32 zeros = _mm512_testn_epi16_mask(result, _mm512_set1_epi16(0x7fff));
            if (zeros != 0 && has_subnormal(low, high)) {
                result = round(low, high, halves, rounding, i);
            }
            cached_stores::store(to + i, result);
        }
        convert<cached_stores>(from + end, to + end, count - end, rounding);
    }

    /// A signalling NaN, the second kind of value in the table, becomes quiet.
    [[DEMI_TARGET_AVX512]] static __m512 widen_halves(const __m256i& halves) {
        const __m512i words = _mm512_maskz_cvtepu16_epi32(0xffff, halves);
        const __m512 numbers = _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, words, 16));
        return _mm512_fixupimm_round_ps(numbers, numbers, _mm512_set1_epi32(0x20), 0,
                                        _MM_FROUND_NO_EXC);
    }

private:
    template <class Half>
    [[DEMI_TARGET_AVX512]] static void widen_first(const Half* from, float* to, std::size_t count) {
        const std::uint16_t lanes = first_lanes(count);
        _mm512_mask_storeu_ps(to, lanes, widen_halves(_mm256_maskz_loadu_epi16(lanes, from)));
    }

    [[DEMI_TARGET_AVX512]] static bool has_subnormal(const __m512i& low, const __m512i& high) {
        return (subnormals(low) | subnormals(high)) != 0;
    }

    [[DEMI_TARGET_AVX512]] static __mmask16 subnormals(const __m512i& floats) {
        const __mmask16 no_exponent =
            _mm512_testn_epi32_mask(floats, _mm512_set1_epi32(0x7f800000));
        return _mm512_mask_test_epi32_mask(no_exponent, floats, _mm512_set1_epi32(0x007fffff));
    }

    /// Permutations that give the lower and the upper halves of 32 words.
    struct splitter {
        __m512i lower, upper;

        [[DEMI_TARGET_AVX512]] splitter() {
            alignas(64) static constexpr std::uint16_t even[32] = {
                0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62};
            lower = _mm512_load_si512(even);
            upper = _mm512_add_epi16(lower, _mm512_set1_epi16(1));
        }
    };

    template <class Rounding>
    [[DEMI_TARGET_AVX512]] static __m512i round(const __m512i& low, const __m512i& high,
                                                const splitter& halves,
                                                const block_rounding<Rounding>& rounding,
                                                std::size_t position) {
        const __m512i kept = _mm512_permutex2var_epi16(low, halves.upper, high);
        __m512i result = kept;
        if constexpr (!std::same_as<Rounding, toward_zero>) {
            const __m512i dropped = _mm512_permutex2var_epi16(low, halves.lower, high);
            const __m512i limit = largest_rounded_down(kept, halves, rounding, position);
            result = _mm512_mask_add_epi16(kept, _mm512_cmpgt_epu16_mask(dropped, limit), kept,
                                           _mm512_set1_epi16(1));
        }
        constexpr int any_nan = 0x81;
        const __mmask32 nan =
            _mm512_kunpackw(_mm512_fpclass_ps_mask(_mm512_castsi512_ps(high), any_nan),
                            _mm512_fpclass_ps_mask(_mm512_castsi512_ps(low), any_nan));
        const __m512i quiet = _mm512_or_si512(kept, _mm512_set1_epi16(0x40));
        return _mm512_mask_blend_epi16(nan, result, quiet);
    }

    [[DEMI_TARGET_AVX512]] static __m512i largest_rounded_down(const __m512i& kept, const splitter&,
                                                               const block_rounding<nearest_even>&,
                                                               std::size_t) {
        const __m512i odd = _mm512_and_si512(kept, _mm512_set1_epi16(1));
        return _mm512_sub_epi16(_mm512_set1_epi16(-0x8000), odd);
    }

    [[DEMI_TARGET_AVX512]] static __m512i largest_rounded_down(
        const __m512i&, const splitter& halves, const block_rounding<stochastic_block>& rounding,
        std::size_t position) {
        using word = word_lanes<16>;
        const word first =
            word::ascending() + (rounding.first + static_cast<std::uint32_t>(position));
        const word low = random_bits(rounding.block, first);
        const word high = random_bits(rounding.block, first + word(16u));
        const __m512i random =
            _mm512_permutex2var_epi16(__m512i(low.words()), halves.upper, __m512i(high.words()));
        return _mm512_xor_si512(random, _mm512_set1_epi16(-1));
    }
};

#pragma GCC diagnostic pop

#endif

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
