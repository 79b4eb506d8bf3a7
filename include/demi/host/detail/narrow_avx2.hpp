// SPDX-License-Identifier: MIT
/// Blocks of floats narrowed to and widened from 8 bits with AVX2.
#pragma once

#include <demi/core/rounding.hpp>
#include <demi/host/detail/bfloat16_block.hpp>
#include <demi/host/detail/narrow_block.hpp>
#include <demi/host/detail/stores.hpp>
#include <demi/precision/format_traits.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI {
namespace detail {

#if defined(__x86_64__)

// The way is that of AVX-512, through float16. The products follow the rounding mode and the flush
// flags, but only where they are so small that they round to zero.
template <>
struct narrow_block<host_isa::avx2> {
    template <class To, class From, class Rounding>
    static constexpr bool converts = !std::same_as<Rounding, stochastic_block> &&
                                     ((std::same_as<From, float> && is_float8<To>) ||
                                      (std::same_as<To, float> && is_float8<From>));

    template <class Stores, class To, class Rounding>
    [[DEMI_TARGET_AVX2]] static void convert(const float* from, To* to, std::size_t count,
                                             const block_rounding<Rounding>&) {
        std::size_t i = 0;
        for (; i + 16 <= count; i += 16) Stores::store(to + i, narrow<To, Rounding>(from + i));
        if (i == count) return;
        float numbers[16] = {};
        __builtin_memcpy(numbers, from + i, (count - i) * sizeof(float));
        std::uint8_t bytes[16];
        cached_stores::store(bytes, narrow<To, Rounding>(numbers));
        __builtin_memcpy(static_cast<void*>(to + i), bytes, count - i);
    }

    template <class Stores, class From, class Rounding>
    [[DEMI_TARGET_AVX2]] static void convert(const From* from, float* to, std::size_t count,
                                             const block_rounding<Rounding>&) {
        std::size_t i = 0;
        for (; i + 8 <= count; i += 8) Stores::store(to + i, widen<From>(from + i));
        if (i == count) return;
        std::uint8_t bytes[8] = {};
        __builtin_memcpy(bytes, from + i, count - i);
        float numbers[8];
        cached_stores::store(numbers, widen<From>(bytes));
        __builtin_memcpy(to + i, numbers, (count - i) * sizeof(float));
    }

private:
    [[DEMI_TARGET_AVX2]] static __m256i same(int value) {
        return _mm256_set1_epi16(static_cast<short>(value));
    }

    /// 8 numbers: a float8 is a float16 without its last bits; E4M3 with another bias.
    template <class From>
    [[DEMI_TARGET_AVX2]] static __m256i widen(const void* from) {
        const __m128i words = _mm_cvtepi8_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
        if constexpr (format_traits<From>::has_infinity) {
            return _mm256_castps_si256(_mm256_cvtph_ps(_mm_slli_epi16(words, 8)));
        } else {
            const __m128i magnitude = _mm_and_si128(words, _mm_set1_epi16(0x7f));
            const __m128i sign = _mm_and_si128(words, _mm_set1_epi16(-0x8000));
            const __m128i halves = _mm_or_si128(_mm_slli_epi16(magnitude, 7), sign);
            const __m256 numbers = _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(256));
            const __m128i nan = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7f));
            const __m256i quiet_nan =
                _mm256_and_si256(_mm256_cvtepi16_epi32(nan), _mm256_set1_epi32(0x7ff00000));
            return _mm256_or_si256(_mm256_castps_si256(numbers), quiet_nan);
        }
    }

    /// 16 bytes. Rounds to a float16 that is odd when bits were dropped, and that one to 8 bits: a
    /// number so prepared is rounded twice to the same result as once.
    template <class To, class Rounding>
    [[DEMI_TARGET_AVX2]] static __m128i narrow(const float* from) {
        constexpr bool has_infinity = format_traits<To>::has_infinity;
        constexpr int dropped = has_infinity ? 8 : 7;
        constexpr int largest = has_infinity ? 0x7b : 0x7e;
        const __m256 low = scale_down<To>(_mm256_loadu_ps(from));
        const __m256 high = scale_down<To>(_mm256_loadu_ps(from + 8));
        const __m128i low_cut = _mm256_cvtps_ph(low, _MM_FROUND_TO_ZERO);
        const __m128i high_cut = _mm256_cvtps_ph(high, _MM_FROUND_TO_ZERO);
        const __m256i halves = _mm256_set_m128i(high_cut, low_cut);
        const __m256i magnitude = _mm256_and_si256(halves, same(0x7fff));
        const __m256i cut = _mm256_srli_epi16(magnitude, dropped);
        __m256i result = cut;
        if constexpr (std::same_as<Rounding, nearest_even>) {
            const __m256i exact = _mm256_permute4x64_epi64(
                _mm256_packs_epi32(is_same(low_cut, low), is_same(high_cut, high)), 0xd8);
            const __m256i prepared =
                _mm256_or_si256(magnitude, _mm256_andnot_si256(exact, same(1)));
            const __m256i bias =
                _mm256_add_epi16(same((1 << (dropped - 1)) - 1), _mm256_and_si256(cut, same(1)));
            result = _mm256_srli_epi16(_mm256_add_epi16(prepared, bias), dropped);
        } else {
            result = _mm256_min_epu16(cut, same(largest));
        }
        const __m256i special = _mm256_cmpgt_epi16(magnitude, same(0x7bff));
        if constexpr (has_infinity) {
            result = _mm256_blendv_epi8(result, cut, special);
        } else {
            const __m256i nan = same(0x7f);
            result = _mm256_blendv_epi8(_mm256_min_epu16(result, nan), nan, special);
        }
        const __m256i sign = _mm256_and_si256(_mm256_srli_epi16(halves, 8), same(0x80));
        result = _mm256_or_si256(result, sign);
        return _mm_packus_epi16(_mm256_castsi256_si128(result),
                                _mm256_extracti128_si256(result, 1));
    }

    /// Moves the exponent of a number to where E4M3 and float16 have the same bits.
    template <class To>
    [[DEMI_TARGET_AVX2]] static __m256 scale_down(const __m256& numbers) {
        if constexpr (format_traits<To>::has_infinity) {
            return numbers;
        } else {
            return _mm256_mul_ps(numbers, _mm256_set1_ps(1.0f / 256));
        }
    }

    [[DEMI_TARGET_AVX2]] static __m256i is_same(const __m128i& halves, const __m256& numbers) {
        return _mm256_cmpeq_epi32(_mm256_castps_si256(_mm256_cvtph_ps(halves)),
                                  _mm256_castps_si256(numbers));
    }
};

#endif

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
