// SPDX-License-Identifier: MIT
/// Blocks of floats narrowed to and widened from 8 bits, and rounded stochastically, with AVX-512.
#pragma once

#include <demi/core/rounding.hpp>
#include <demi/host/detail/bfloat16_block.hpp>
#include <demi/host/detail/narrow_block.hpp>
#include <demi/host/detail/stores.hpp>
#include <demi/host/detail/word_lanes.hpp>
#include <demi/precision/float16.hpp>
#include <demi/precision/format_traits.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI {
namespace detail {

#if defined(__x86_64__)

// Operations that would look at the rounding mode say how they round; what the flush flags change
// rounds to the same number.
// Without optimisation g++ has macros for some instructions, and warns about their masks here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Woverflow"

template <>
struct narrow_block<host_isa::avx512> {
    static constexpr int quietly = _MM_FROUND_NO_EXC;

    template <class To, class From, class Rounding>
    static constexpr bool converts = (std::same_as<From, float> && is_float8<To>) ||
                                     (std::same_as<To, float> && is_float8<From>) ||
                                     (std::same_as<From, float> && same_format<To, float16> &&
                                      std::same_as<Rounding, stochastic_block>);

    template <class Stores, class To, class Rounding>
    [[DEMI_TARGET_AVX512, gnu::flatten]] static void convert(
        const float* from, To* to, std::size_t count, const block_rounding<Rounding>& rounding) {
        std::size_t i = 0;
        for (; i + 32 <= count; i += 32) {
            const __m512i low = _mm512_loadu_si512(from + i);
            const __m512i high = _mm512_loadu_si512(from + i + 16);
            Stores::store(to + i, narrow<To>(low, high, rounding, i));
        }
        if (i == count) return;
        const std::uint32_t rest = (std::uint32_t{1} << (count - i)) - 1;
        const auto high_rest = static_cast<std::uint16_t>(rest >> 16);
        const __m512i low = _mm512_maskz_loadu_epi32(static_cast<std::uint16_t>(rest), from + i);
        // Without a lane the address is not used, but it should be one of the array.
        const float* next = high_rest != 0 ? from + i + 16 : from + i;
        const __m512i high = _mm512_maskz_loadu_epi32(high_rest, next);
        if constexpr (sizeof(To) == 1) {
            _mm256_mask_storeu_epi8(to + i, rest, narrow<To>(low, high, rounding, i));
        } else {
            _mm512_mask_storeu_epi16(to + i, rest, narrow<To>(low, high, rounding, i));
        }
    }

    template <class Stores, class From, class Rounding>
    [[DEMI_TARGET_AVX512, gnu::flatten]] static void convert(const From* from, float* to,
                                                             std::size_t count,
                                                             const block_rounding<Rounding>&) {
        std::size_t i = 0;
        for (; i + 16 <= count; i += 16) {
            const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
            Stores::store(to + i, _mm512_castps_si512(widen_bytes<From>(bytes)));
        }
        if (i == count) return;
        const auto rest = static_cast<std::uint16_t>((1u << (count - i)) - 1);
        const __m128i bytes = _mm_maskz_loadu_epi8(rest, from + i);
        _mm512_mask_storeu_ps(to + i, rest, widen_bytes<From>(bytes));
    }

private:
    /// 32 numbers, as many bytes or halves.
    template <class To, class Rounding>
    [[DEMI_TARGET_AVX512]] static auto narrow(const __m512i& low, const __m512i& high,
                                              const block_rounding<Rounding>& rounding,
                                              std::size_t position) {
        __m512i halves;
        if constexpr (std::same_as<Rounding, stochastic_block>) {
            halves = join(
                _mm512_maskz_cvtepi32_epi16(0xffff, round_randomly<To>(low, rounding, position)),
                _mm512_maskz_cvtepi32_epi16(0xffff,
                                            round_randomly<To>(high, rounding, position + 16)));
        } else {
            halves = narrow_to_bytes<To, Rounding>(low, high);
        }
        if constexpr (sizeof(To) == 1) {
            return _mm512_maskz_cvtepi16_epi8(0xffffffff, halves);
        } else {
            return halves;
        }
    }

    [[DEMI_TARGET_AVX512]] static __m512i join(const __m256i& low, const __m256i& high) {
        return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(low), high, 1);
    }

    /// A float8 is a float16 without its last bits; E4M3 with another bias.
    template <class From>
    [[DEMI_TARGET_AVX512]] static __m512 widen_bytes(const __m128i& bytes) {
        const __m256i words = _mm256_cvtepi8_epi16(bytes);
        if constexpr (same_format<From, float8_e5m2>) {
            const __m256i halves = _mm256_slli_epi16(words, 8);
            return _mm512_maskz_cvtph_ps(0xffff, halves);
        } else {
            const __m256i magnitude = _mm256_and_si256(words, _mm256_set1_epi16(0x7f));
            const __m256i sign = _mm256_and_si256(words, _mm256_set1_epi16(-0x8000));
            const __m256i halves = _mm256_or_si256(_mm256_slli_epi16(magnitude, 7), sign);
            const __m512 numbers = _mm512_maskz_cvtph_ps(0xffff, halves);
            const __m512 scaled = _mm512_maskz_mul_round_ps(0xffff, numbers, _mm512_set1_ps(256),
                                                            _MM_FROUND_TO_NEAREST_INT | quietly);
            const __mmask16 nan = _mm256_cmpeq_epi16_mask(magnitude, _mm256_set1_epi16(0x7f));
            const __m512i quiet_nan = _mm512_set1_epi32(0x7ff00000);
            return _mm512_castsi512_ps(_mm512_mask_or_epi32(
                _mm512_castps_si512(scaled), nan, _mm512_castps_si512(scaled), quiet_nan));
        }
    }

    /// Rounds to a float16 that is odd when bits were dropped, and that one to 8 bits: a number so
    /// prepared is rounded twice to the same result as once.
    template <class To, class Rounding>
    [[DEMI_TARGET_AVX512]] static __m512i narrow_to_bytes(const __m512i& low_bits,
                                                          const __m512i& high_bits) {
        constexpr bool has_infinity = format_traits<To>::has_infinity;
        constexpr unsigned dropped = has_infinity ? 8 : 7;
        constexpr short largest = has_infinity ? 0x7b : 0x7e;
        const __m512 low = scale_down<To>(low_bits), high = scale_down<To>(high_bits);
        const __m256i low_cut = _mm512_maskz_cvtps_ph(0xffff, low, _MM_FROUND_TO_ZERO | quietly);
        const __m256i high_cut = _mm512_maskz_cvtps_ph(0xffff, high, _MM_FROUND_TO_ZERO | quietly);
        const __m512i halves = join(low_cut, high_cut);
        const __m512i magnitude = _mm512_and_si512(halves, _mm512_set1_epi16(0x7fff));
        const __m512i cut = _mm512_maskz_srli_epi16(0xffffffff, magnitude, dropped);
        __m512i result = cut;
        if constexpr (std::same_as<Rounding, nearest_even>) {
            const __mmask32 inexact = _mm512_kunpackw(differ(high_cut, high), differ(low_cut, low));
            const __m512i one = _mm512_set1_epi16(1);
            const __m512i odd = _mm512_or_si512(magnitude, one);
            const __m512i half = _mm512_set1_epi16((1 << (dropped - 1)) - 1);
            const __m512i bias = _mm512_add_epi16(half, _mm512_and_si512(cut, one));
            const __m512i prepared = _mm512_mask_blend_epi16(inexact, magnitude, odd);
            result = _mm512_maskz_srli_epi16(0xffffffff, _mm512_add_epi16(prepared, bias), dropped);
        } else {
            result = _mm512_maskz_min_epu16(0xffffffff, cut, _mm512_set1_epi16(largest));
        }
        const __mmask32 special = _mm512_cmpgt_epi16_mask(magnitude, _mm512_set1_epi16(0x7bff));
        if constexpr (has_infinity) {
            result = _mm512_mask_blend_epi16(special, result, cut);
        } else {
            const __m512i nan = _mm512_set1_epi16(0x7f);
            result = _mm512_mask_blend_epi16(special,
                                             _mm512_maskz_min_epu16(0xffffffff, result, nan), nan);
        }
        const __m512i sign = _mm512_maskz_srli_epi16(0xffffffff, halves, 8);
        return _mm512_or_si512(result, _mm512_and_si512(sign, _mm512_set1_epi16(0x80)));
    }

    /// Moves the exponent of a number to where E4M3 and float16 have the same bits.
    template <class To>
    [[DEMI_TARGET_AVX512]] static __m512 scale_down(const __m512i& bits) {
        const __m512 numbers = _mm512_castsi512_ps(bits);
        if constexpr (format_traits<To>::has_infinity) {
            return numbers;
        } else {
            return _mm512_maskz_mul_round_ps(0xffff, numbers, _mm512_set1_ps(1.0f / 256),
                                             _MM_FROUND_TO_NEAREST_INT | quietly);
        }
    }

    [[DEMI_TARGET_AVX512]] static __mmask16 differ(const __m256i& halves, const __m512& numbers) {
        const __m512 back = _mm512_maskz_cvtph_ps(0xffff, halves);
        return _mm512_cmpneq_epi32_mask(_mm512_castps_si512(back), _mm512_castps_si512(numbers));
    }

    [[DEMI_TARGET_AVX512]] static __m512i same(int value) { return _mm512_set1_epi32(value); }

    /// What the scalar conversion does, with shifts of its own in each lane: those by more than
    /// 31 places, or by a negative number of them, give zero.
    template <class To>
    [[DEMI_TARGET_AVX512]] static __m512i round_randomly(
        const __m512i& bits, const block_rounding<stochastic_block>& rounding,
        std::size_t position) {
        using target = typename format_traits<To>::layout;
        constexpr int dropped = 23 - target::mantissa_bits;
        constexpr int rebias = 127 - target::exponent_bias;
        const __m512i magnitude = _mm512_and_si512(bits, same(0x7fffffff));
        const __m512i exponent = _mm512_maskz_srli_epi32(0xffff, magnitude, 23);
        const __mmask16 subnormal = _mm512_cmplt_epi32_mask(magnitude, same((rebias + 1) << 23));
        const __m512i mantissa = _mm512_and_si512(magnitude, same(0x007fffff));
        __m512i scaled = _mm512_sub_epi32(magnitude, same(rebias << 23));
        scaled = _mm512_mask_or_epi32(scaled, subnormal, mantissa, same(0x00800000));
        __m512i shift = same(dropped);
        shift = _mm512_mask_sub_epi32(shift, subnormal, same(dropped + rebias + 1), exponent);

        const __m512i left = _mm512_sub_epi32(same(32), shift);
        const __m512i right = _mm512_sub_epi32(shift, same(32));
        const __m512i fraction = _mm512_or_si512(_mm512_maskz_sllv_epi32(0xffff, scaled, left),
                                                 _mm512_maskz_srlv_epi32(0xffff, scaled, right));
        const word_lanes<16> place =
            word_lanes<16>::ascending() + (rounding.first + static_cast<std::uint32_t>(position));
        const __m512i random = __m512i(random_bits(rounding.block, place).words());
        const __mmask16 up = _mm512_cmpgt_epu32_mask(fraction, _mm512_xor_si512(random, same(-1)));
        __m512i result = _mm512_maskz_srlv_epi32(0xffff, scaled, shift);
        result = _mm512_mask_add_epi32(result, up, result, same(1));

        const __mmask16 beyond =
            _mm512_cmpgt_epi32_mask(result, same(static_cast<int>(target::max_finite_bits)));
        result =
            _mm512_mask_mov_epi32(result, beyond, same(static_cast<int>(target::overflow_bits)));
        const __mmask16 nan = _mm512_cmpgt_epi32_mask(magnitude, same(0x7f800000));
        __m512i payload = _mm512_maskz_srli_epi32(0xffff, magnitude, dropped);
        payload = _mm512_and_si512(
            payload, same(target::has_infinity ? static_cast<int>(target::mantissa_mask) : 0));
        payload = _mm512_or_si512(payload, same(static_cast<int>(target::quiet_nan_bits)));
        result = _mm512_mask_mov_epi32(result, nan, payload);
        const __m512i sign = _mm512_maskz_srli_epi32(0xffff, bits, 32 - target::bits);
        return _mm512_or_si512(result,
                               _mm512_and_si512(sign, same(static_cast<int>(target::sign_mask))));
    }
};

#pragma GCC diagnostic pop

#endif

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
