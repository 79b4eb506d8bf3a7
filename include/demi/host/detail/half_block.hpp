// SPDX-License-Identifier: MIT
/// Blocks of float16 and float, converted by the instructions made for it.
#pragma once

#include <demi/core/rounding.hpp>
#include <demi/host/detail/lane_vectors.hpp>
#include <demi/host/detail/stores.hpp>
#include <demi/host/isa.hpp>
#include <demi/precision/float16.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

// The instructions round as the operand says and not as the control register does, keep subnormals
// of float16 whatever its flush flags, and make NaN quiet in the way of `convert`. A subnormal
// float, which they may take for zero, is zero in float16 anyway.

namespace demi::inline DEMI_ABI {
namespace detail {

/// What there is without such instructions: nothing.
template <host_isa Isa>
struct half_block {
    template <class To, class From, class Rounding>
    static constexpr bool converts = false;
};

#if defined(__x86_64__)

template <class To, class From, class Rounding>
inline constexpr bool is_half_conversion =
    (std::same_as<Rounding, nearest_even> || std::same_as<Rounding, toward_zero>)&&(
        (std::same_as<To, float> && same_format<From, float16>) ||
        (std::same_as<From, float> && same_format<To, float16>));

template <class Rounding>
inline constexpr int rounding_code =
    std::same_as<Rounding, toward_zero> ? _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC
                                        : _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

template <>
struct half_block<host_isa::avx2> {
    template <class To, class From, class Rounding>
    static constexpr bool converts = is_half_conversion<To, From, Rounding>;

    template <class Stores, class Half, class Rounding>
    [[DEMI_TARGET_AVX2]] static void convert(const Half* from, float* to, std::size_t count,
                                             Rounding) {
        std::size_t i = 0;
        for (; i + 8 <= count; i += 8) {
            const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
            Stores::store(to + i, _mm256_castps_si256(_mm256_cvtph_ps(halves)));
        }
        for (; i < count; ++i) {
            const auto half = static_cast<short>(to_bits(from[i]));
            to[i] = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
        }
    }

    template <class Stores, class Half, class Rounding>
    [[DEMI_TARGET_AVX2]] static void convert(const float* from, Half* to, std::size_t count,
                                             Rounding) {
        constexpr int code = rounding_code<Rounding>;
        std::size_t i = 0;
        for (; i + 8 <= count; i += 8) {
            const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), code);
            Stores::store(to + i, halves);
        }
        for (; i < count; ++i) {
            const int half = _mm_cvtsi128_si32(_mm_cvtps_ph(_mm_load_ss(from + i), code));
            to[i] = from_bits<Half>(static_cast<std::uint16_t>(half));
        }
    }
};

template <>
struct half_block<host_isa::avx512> {
    template <class To, class From, class Rounding>
    static constexpr bool converts = is_half_conversion<To, From, Rounding>;

    template <class Stores, class Half, class Rounding>
    [[DEMI_TARGET_AVX512]] static void convert(const Half* from, float* to, std::size_t count,
                                               Rounding) {
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
            Stores::store(to + i, widen(low));
            Stores::store(to + i + 16, widen(high));
        }
        for (; i < count; i += 16) widen_first(from + i, to + i, count - i);
    }

    template <class Stores, class Half, class Rounding>
    [[DEMI_TARGET_AVX512]] static void convert(const float* from, Half* to, std::size_t count,
                                               Rounding) {
        constexpr int code = rounding_code<Rounding>;
        std::size_t i = 0;
        for (; i + 32 <= count; i += 32) {
            Stores::store(to + i, _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from + i), code));
            Stores::store(to + i + 16,
                          _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from + i + 16), code));
        }
        for (; i < count; i += 16) {
            const std::uint16_t rest = first_lanes(count - i);
            const __m512 floats = _mm512_maskz_loadu_ps(rest, from + i);
            _mm256_mask_storeu_epi16(to + i, rest, _mm512_maskz_cvtps_ph(rest, floats, code));
        }
    }

private:
    [[DEMI_TARGET_AVX512]] static __m512i widen(const __m256i& halves) {
        return _mm512_castps_si512(_mm512_maskz_cvtph_ps(0xffff, halves));
    }

    template <class Half>
    [[DEMI_TARGET_AVX512]] static void widen_first(const Half* from, float* to, std::size_t count) {
        const std::uint16_t lanes = first_lanes(count);
        _mm512_mask_storeu_epi32(to, lanes, widen(_mm256_maskz_loadu_epi16(lanes, from)));
    }
};

#endif

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
