// SPDX-License-Identifier: MIT
/// The vector operations behind packs of lanes, for 4, 8 and 16 floats.
///
/// Additions, products and bitwise operations on wide vectors may be written with operators in code
/// without a target: they stay whole until they are inlined into a function that has one. What is
/// here does not survive that, or needs an instruction of its own. Vectors are passed by reference,
/// since passing them by value needs the instruction set on both sides of a call.
#pragma once

#include <demi/core/config.hpp>

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/// Instruction sets of single functions, so that no compiler flag is needed.
#define DEMI_TARGET_AVX2 gnu::target("avx2,fma,f16c")
#define DEMI_TARGET_AVX512 gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
#define DEMI_TARGET_AVX512_BF16 \
    gnu::target("avx512bf16,avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")

// The way of a loop, and of the functor inside it, into a function with a target. g++ flattens such
// a function all the way down, but only through callees that it has compiled before, an order that
// always_inline disturbs. clang flattens direct calls only, so there every step says it.
#if defined(__clang__)
/// Marks members of packs.
#define DEMI_LANE_INLINE [[gnu::always_inline]]
/// Marks the steps between a function with a target and the functor.
#define DEMI_HOST_KERNEL [[gnu::always_inline, gnu::flatten]] inline
#else
#define DEMI_LANE_INLINE
#define DEMI_HOST_KERNEL inline
#endif

namespace demi::inline DEMI_ABI {
namespace detail {

template <class T, int Count>
struct vector_of {
    typedef T type __attribute__((vector_size(sizeof(T) * Count)));
    typedef T unaligned __attribute__((vector_size(sizeof(T) * Count), aligned(1), may_alias));
};

template <class T, int Count>
using vector = typename vector_of<T, Count>::type;

enum class comparison { equal, not_equal, less, less_equal };

template <int Count>
struct vector_operations;

#if defined(__x86_64__)

template <>
struct vector_operations<4> {
    using floats = vector<float, 4>;
    using doubles = vector<double, 2>;
    using integers = vector<std::int32_t, 4>;
    using mask = integers;

    static void broadcast(floats& to, float value) { to = _mm_set1_ps(value); }
    static void sqrt(floats& to, const floats& a) { to = _mm_sqrt_ps(a); }
    static void min(floats& to, const floats& a, const floats& b) { to = _mm_min_ps(a, b); }
    static void max(floats& to, const floats& a, const floats& b) { to = _mm_max_ps(a, b); }
    static void max(integers& to, const integers& a, const integers& b) {
        const integers greater = a > b;
        to = (greater & a) | (~greater & b);
    }
    static void select(floats& to, const mask& which, const floats& a, const floats& b) {
        to = floats((which & integers(a)) | (~which & integers(b)));
    }
    template <comparison Kind>
    static void compare(mask& to, const floats& a, const floats& b) {
        if constexpr (Kind == comparison::equal) {
            to = mask(_mm_cmpeq_ps(a, b));
        } else if constexpr (Kind == comparison::not_equal) {
            to = mask(_mm_cmpneq_ps(a, b));
        } else if constexpr (Kind == comparison::less) {
            to = mask(_mm_cmplt_ps(a, b));
        } else {
            to = mask(_mm_cmple_ps(a, b));
        }
    }
    static void magnitudes(integers& to, const floats& a) { to = integers(a) & 0x7fffffff; }
    static void less(mask& to, const integers& a, std::int32_t b) {
        to = mask(_mm_cmplt_epi32(__m128i(a), _mm_set1_epi32(b)));
    }
    static void widen(doubles& low, doubles& high, const floats& a) {
        low = _mm_cvtps_pd(a);
        high = _mm_cvtps_pd(_mm_movehl_ps(a, a));
    }
    static void add_square(floats& to, const floats& a) { to += a * a; }
    static double sum(const doubles& a) { return a[0] + a[1]; }
    static std::uint32_t largest(const integers& a) {
        std::int32_t result = a[0];
        for (int i = 1; i < 4; ++i) result = a[i] > result ? a[i] : result;
        return static_cast<std::uint32_t>(result);
    }
    static void broadcast(doubles& to, double value) { to = _mm_set1_pd(value); }
};

/// The predicate operand of a vector comparison; quiet, and false for NaN except `!=`.
template <comparison Kind>
inline constexpr int comparison_code = Kind == comparison::equal       ? _CMP_EQ_OQ
                                       : Kind == comparison::not_equal ? _CMP_NEQ_UQ
                                       : Kind == comparison::less      ? _CMP_LT_OQ
                                                                       : _CMP_LE_OQ;

template <>
struct vector_operations<8> {
    using floats = vector<float, 8>;
    using doubles = vector<double, 4>;
    using integers = vector<std::int32_t, 8>;
    using mask = integers;

    [[DEMI_TARGET_AVX2]] static void broadcast(floats& to, float value) {
        to = _mm256_set1_ps(value);
    }
    [[DEMI_TARGET_AVX2]] static void sqrt(floats& to, const floats& a) { to = _mm256_sqrt_ps(a); }
    [[DEMI_TARGET_AVX2]] static void min(floats& to, const floats& a, const floats& b) {
        to = _mm256_min_ps(a, b);
    }
    [[DEMI_TARGET_AVX2]] static void max(floats& to, const floats& a, const floats& b) {
        to = _mm256_max_ps(a, b);
    }
    /// Twice the magnitudes: to add is quicker than to mask.
    static void magnitudes(integers& to, const floats& a) {
        using words = vector<std::uint32_t, 8>;
        to = integers(words(a) + words(a));
    }
    [[DEMI_TARGET_AVX2]] static void max(integers& to, const integers& a, const integers& b) {
        to = integers(_mm256_max_epu32(__m256i(a), __m256i(b)));
    }
    [[DEMI_TARGET_AVX2]] static void select(floats& to, const mask& which, const floats& a,
                                            const floats& b) {
        to = _mm256_blendv_ps(b, a, __m256(which));
    }
    template <comparison Kind>
    [[DEMI_TARGET_AVX2]] static void compare(mask& to, const floats& a, const floats& b) {
        to = mask(_mm256_cmp_ps(a, b, comparison_code<Kind>));
    }
    [[DEMI_TARGET_AVX2]] static void less(mask& to, const integers& a, std::int32_t b) {
        to = mask(_mm256_cmpgt_epi32(_mm256_set1_epi32(b), _mm256_srli_epi32(__m256i(a), 1)));
    }
    [[DEMI_TARGET_AVX2]] static void widen(doubles& low, doubles& high, const floats& a) {
        low = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
        high = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
    }
    [[DEMI_TARGET_AVX2]] static void add_square(floats& to, const floats& a) {
        to = _mm256_fmadd_ps(a, a, to);
    }
    [[DEMI_TARGET_AVX2]] static double sum(const doubles& a) {
        return vector_operations<4>::sum(_mm256_castpd256_pd128(a) + _mm256_extractf128_pd(a, 1));
    }
    [[DEMI_TARGET_AVX2]] static std::uint32_t largest(const integers& a) {
        __m128i most = _mm_max_epu32(_mm256_castsi256_si128(__m256i(a)),
                                     _mm256_extracti128_si256(__m256i(a), 1));
        most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0x4e));
        most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0xb1));
        return static_cast<std::uint32_t>(_mm_cvtsi128_si32(most)) / 2;
    }
    [[DEMI_TARGET_AVX2]] static void broadcast(doubles& to, double value) {
        to = _mm256_set1_pd(value);
    }
    [[DEMI_TARGET_AVX2]] static void load_float16(floats& to, const void* from) {
        to = _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from)));
    }
    template <int Rounding>
    [[DEMI_TARGET_AVX2]] static void store_float16(void* to, const floats& from) {
        _mm_storeu_si128(static_cast<__m128i*>(to), _mm256_cvtps_ph(from, Rounding));
    }
};

/// The forms with a full mask keep g++ from warning about its own header.
template <>
struct vector_operations<16> {
    using floats = vector<float, 16>;
    using doubles = vector<double, 8>;
    using integers = vector<std::int32_t, 16>;
    using mask = std::uint16_t;

    static constexpr std::uint16_t all = 0xffff;
    static constexpr std::uint8_t half = 0xff;

    [[DEMI_TARGET_AVX512]] static void broadcast(floats& to, float value) {
        to = _mm512_set1_ps(value);
    }
    [[DEMI_TARGET_AVX512]] static void sqrt(floats& to, const floats& a) {
        to = _mm512_maskz_sqrt_ps(all, a);
    }
    [[DEMI_TARGET_AVX512]] static void min(floats& to, const floats& a, const floats& b) {
        to = _mm512_maskz_min_ps(all, a, b);
    }
    [[DEMI_TARGET_AVX512]] static void max(floats& to, const floats& a, const floats& b) {
        to = _mm512_maskz_max_ps(all, a, b);
    }
    static void magnitudes(integers& to, const floats& a) {
        using words = vector<std::uint32_t, 16>;
        to = integers(words(a) + words(a));
    }
    [[DEMI_TARGET_AVX512]] static void max(integers& to, const integers& a, const integers& b) {
        to = integers(_mm512_maskz_max_epu32(all, __m512i(a), __m512i(b)));
    }
    [[DEMI_TARGET_AVX512]] static void select(floats& to, mask which, const floats& a,
                                              const floats& b) {
        to = _mm512_mask_blend_ps(which, b, a);
    }
    template <comparison Kind>
    [[DEMI_TARGET_AVX512]] static void compare(mask& to, const floats& a, const floats& b) {
        to = _mm512_cmp_ps_mask(a, b, comparison_code<Kind>);
    }
    [[DEMI_TARGET_AVX512]] static void less(mask& to, const integers& a, std::int32_t b) {
        const std::uint32_t doubled = 2 * static_cast<std::uint32_t>(b);
        to = _mm512_cmplt_epu32_mask(__m512i(a),
                                     _mm512_set1_epi32(static_cast<std::int32_t>(doubled)));
    }
    [[DEMI_TARGET_AVX512]] static void widen(doubles& low, doubles& high, const floats& a) {
        low = _mm512_maskz_cvtps_pd(half, _mm512_maskz_extractf32x8_ps(half, a, 0));
        high = _mm512_maskz_cvtps_pd(half, _mm512_maskz_extractf32x8_ps(half, a, 1));
    }
    [[DEMI_TARGET_AVX512]] static void add_square(floats& to, const floats& a) {
        to = _mm512_fmadd_ps(a, a, to);
    }
    [[DEMI_TARGET_AVX512]] static double sum(const doubles& a) {
        return vector_operations<8>::sum(_mm512_maskz_extractf64x4_pd(half, a, 0) +
                                         _mm512_maskz_extractf64x4_pd(half, a, 1));
    }
    [[DEMI_TARGET_AVX512]] static std::uint32_t largest(const integers& a) {
        const __m256i low = _mm512_maskz_extracti64x4_epi64(half, __m512i(a), 0);
        const __m256i high = _mm512_maskz_extracti64x4_epi64(half, __m512i(a), 1);
        return vector_operations<8>::largest(
            vector_operations<8>::integers(_mm256_max_epu32(low, high)));
    }
    [[DEMI_TARGET_AVX512]] static void broadcast(doubles& to, double value) {
        to = _mm512_set1_pd(value);
    }
    [[DEMI_TARGET_AVX512]] static void load_float16(floats& to, const void* from) {
        to = _mm512_maskz_cvtph_ps(all, _mm256_loadu_si256(static_cast<const __m256i*>(from)));
    }
    template <int Rounding>
    [[DEMI_TARGET_AVX512]] static void store_float16(void* to, const floats& from) {
        _mm256_storeu_si256(static_cast<__m256i*>(to), _mm512_maskz_cvtps_ph(all, from, Rounding));
    }
};

#else

template <>
struct vector_operations<4> {
    using floats = vector<float, 4>;
    using doubles = vector<double, 2>;
    using integers = vector<std::int32_t, 4>;
    using mask = integers;

    static void broadcast(floats& to, float value) { to = floats{value, value, value, value}; }
    static void sqrt(floats& to, const floats& a) {
        for (int i = 0; i < 4; ++i) to[i] = __builtin_sqrtf(a[i]);
    }
    static void min(floats& to, const floats& a, const floats& b) { to = a < b ? a : b; }
    static void max(floats& to, const floats& a, const floats& b) { to = a > b ? a : b; }
    static void max(integers& to, const integers& a, const integers& b) { to = a > b ? a : b; }
    static void select(floats& to, const mask& which, const floats& a, const floats& b) {
        to = which ? a : b;
    }
    template <comparison Kind>
    static void compare(mask& to, const floats& a, const floats& b) {
        if constexpr (Kind == comparison::equal) {
            to = a == b;
        } else if constexpr (Kind == comparison::not_equal) {
            to = a != b;
        } else if constexpr (Kind == comparison::less) {
            to = a < b;
        } else {
            to = a <= b;
        }
    }
    static void magnitudes(integers& to, const floats& a) { to = integers(a) & 0x7fffffff; }
    static void less(mask& to, const integers& a, std::int32_t b) { to = a < integers{b, b, b, b}; }
    static void widen(doubles& low, doubles& high, const floats& a) {
        low = doubles{a[0], a[1]};
        high = doubles{a[2], a[3]};
    }
    static void add_square(floats& to, const floats& a) { to += a * a; }
    static double sum(const doubles& a) { return a[0] + a[1]; }
    static std::uint32_t largest(const integers& a) {
        std::int32_t result = a[0];
        for (int i = 1; i < 4; ++i) result = a[i] > result ? a[i] : result;
        return static_cast<std::uint32_t>(result);
    }
    static void broadcast(doubles& to, double value) { to = doubles{value, value}; }
};

#endif

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
