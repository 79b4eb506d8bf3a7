// SPDX-License-Identifier: MIT
#include "hand_casts.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench::hand {

#if defined(__x86_64__)

namespace {

constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

__m256i* at256(std::uint16_t* p) { return reinterpret_cast<__m256i*>(p); }
const __m256i* at256(const std::uint16_t* p) { return reinterpret_cast<const __m256i*>(p); }
__m128i* at128(std::uint16_t* p) { return reinterpret_cast<__m128i*>(p); }
const __m128i* at128(const std::uint16_t* p) { return reinterpret_cast<const __m128i*>(p); }

[[gnu::target("avx512f")]] void narrow_f16_512(const float* from, std::uint16_t* to,
                                               std::size_t count) {
    for (std::size_t i = 0; i < count; i += 32) {
        const __m256i low = _mm512_cvtps_ph(_mm512_loadu_ps(from + i), nearest);
        const __m256i high = _mm512_cvtps_ph(_mm512_loadu_ps(from + i + 16), nearest);
        _mm256_storeu_si256(at256(to + i), low);
        _mm256_storeu_si256(at256(to + i + 16), high);
    }
}

[[gnu::target("avx512f")]] void widen_f16_512(const std::uint16_t* from, float* to,
                                              std::size_t count) {
    for (std::size_t i = 0; i < count; i += 32) {
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256(at256(from + i))));
        _mm512_storeu_ps(to + i + 16, _mm512_cvtph_ps(_mm256_loadu_si256(at256(from + i + 16))));
    }
}

[[gnu::target("avx,f16c")]] void narrow_f16_256(const float* from, std::uint16_t* to,
                                                std::size_t count) {
    for (std::size_t i = 0; i < count; i += 16) {
        const __m128i low = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), nearest);
        const __m128i high = _mm256_cvtps_ph(_mm256_loadu_ps(from + i + 8), nearest);
        _mm_storeu_si128(at128(to + i), low);
        _mm_storeu_si128(at128(to + i + 8), high);
    }
}

[[gnu::target("avx,f16c")]] void widen_f16_256(const std::uint16_t* from, float* to,
                                               std::size_t count) {
    for (std::size_t i = 0; i < count; i += 16) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(at128(from + i))));
        _mm256_storeu_ps(to + i + 8, _mm256_cvtph_ps(_mm_loadu_si128(at128(from + i + 8))));
    }
}

/// The upper half of every lane: adds half of the last place kept, less one for an even one; NaN
/// keeps its sign and upper bits.
[[gnu::target("avx512f,avx512bw"), gnu::always_inline]] inline __m512i round_512(__m512 value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
}

[[gnu::target("avx512f,avx512bw")]] void narrow_bf16_512(const float* from, std::uint16_t* to,
                                                         std::size_t count) {
    std::uint16_t odd_words[32];
    for (unsigned i = 0; i < 32; ++i) odd_words[i] = static_cast<std::uint16_t>(2 * i + 1);
    const __m512i upper = _mm512_loadu_si512(odd_words);
    for (std::size_t i = 0; i < count; i += 32) {
        const __m512i low = round_512(_mm512_loadu_ps(from + i));
        const __m512i high = round_512(_mm512_loadu_ps(from + i + 16));
        _mm512_storeu_si512(to + i, _mm512_permutex2var_epi16(low, upper, high));
    }
}

[[gnu::target("avx512f,avx512bf16")]] void narrow_bf16_instruction(const float* from,
                                                                   std::uint16_t* to,
                                                                   std::size_t count) {
    for (std::size_t i = 0; i < count; i += 32) {
        const __m512bh both =
            _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i + 16), _mm512_loadu_ps(from + i));
        _mm512_storeu_si512(to + i, reinterpret_cast<__m512i>(both));
    }
}

[[gnu::target("avx512f")]] void widen_bf16_512(const std::uint16_t* from, float* to,
                                               std::size_t count) {
    for (std::size_t i = 0; i < count; i += 32) {
        const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(at256(from + i)));
        const __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256(at256(from + i + 16)));
        _mm512_storeu_si512(to + i, _mm512_slli_epi32(low, 16));
        _mm512_storeu_si512(to + i + 16, _mm512_slli_epi32(high, 16));
    }
}

/// Calls `step(i)` for every 32nd element, at four places of every 2^18 elements by turns: a loop
/// from one end to the other waits longer for pages.
template <class Step>
[[gnu::target("avx512f"), gnu::always_inline]] inline void by_turns(std::size_t count,
                                                                    const Step& step) {
    constexpr std::size_t part = std::size_t{1} << 16;
    constexpr std::size_t turn = 128;
    const std::size_t end = count - count % (4 * part);
    for (std::size_t block = 0; block < end; block += 4 * part) {
        for (std::size_t at = block; at < block + part; at += turn) {
            for (std::size_t first = at; first < at + 4 * part; first += part) {
                for (std::size_t i = first; i < first + turn; i += 32) step(i);
            }
        }
    }
    for (std::size_t i = end; i < count; i += 32) step(i);
}

[[gnu::target("avx512f"), gnu::always_inline]] inline void halve_512(const float* from,
                                                                     std::uint16_t* to) {
    const __m512i both = _mm512_or_si512(_mm512_loadu_si512(from), _mm512_loadu_si512(from + 16));
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), both);
}

[[gnu::target("avx512f"), gnu::always_inline]] inline void double_512(const std::uint16_t* from,
                                                                      float* to) {
    const __m512i both = _mm512_loadu_si512(from);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), both);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 16), both);
}

[[gnu::target("avx512f")]] void narrow_stream(const float* from, std::uint16_t* to,
                                              std::size_t count) {
    for (std::size_t i = 0; i < count; i += 32) halve_512(from + i, to + i);
    _mm_sfence();
}

[[gnu::target("avx512f")]] void narrow_stream_by_turns(const float* from, std::uint16_t* to,
                                                       std::size_t count) {
    by_turns(
        count, [=](std::size_t i) __attribute__((target("avx512f"), always_inline)) {
            halve_512(from + i, to + i);
        });
    _mm_sfence();
}

[[gnu::target("avx512f")]] void widen_stream(const std::uint16_t* from, float* to,
                                             std::size_t count) {
    for (std::size_t i = 0; i < count; i += 32) double_512(from + i, to + i);
    _mm_sfence();
}

[[gnu::target("avx512f")]] void widen_stream_by_turns(const std::uint16_t* from, float* to,
                                                      std::size_t count) {
    by_turns(
        count, [=](std::size_t i) __attribute__((target("avx512f"), always_inline)) {
            double_512(from + i, to + i);
        });
    _mm_sfence();
}

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i round_256(__m256 value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
}

[[gnu::target("avx2")]] void narrow_bf16_256(const float* from, std::uint16_t* to,
                                             std::size_t count) {
    for (std::size_t i = 0; i < count; i += 16) {
        const __m256i pairs = _mm256_packus_epi32(round_256(_mm256_loadu_ps(from + i)),
                                                  round_256(_mm256_loadu_ps(from + i + 8)));
        _mm256_storeu_si256(at256(to + i), _mm256_permute4x64_epi64(pairs, 0xd8));
    }
}

[[gnu::target("avx2")]] void widen_bf16_256(const std::uint16_t* from, float* to,
                                            std::size_t count) {
    for (std::size_t i = 0; i < count; i += 8) {
        const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(at128(from + i)));
        _mm256_storeu_ps(to + i, _mm256_castsi256_ps(_mm256_slli_epi32(words, 16)));
    }
}

bool has_512() {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0;
}
/// Every processor with AVX2 has F16C, which not every compiler can ask for.
bool has_256() { return __builtin_cpu_supports("avx2") != 0; }
bool has_bfloat16() { return __builtin_cpu_supports("avx512bf16") != 0; }

}  // namespace

#endif

std::vector<loop<narrow_function>> float16_from_float() {
    std::vector<loop<narrow_function>> all;
#if defined(__x86_64__)
    if (has_512()) all.push_back({"hand AVX-512", narrow_f16_512});
    if (has_256()) all.push_back({"hand F16C", narrow_f16_256});
#endif
    return all;
}

std::vector<loop<widen_function>> float_from_float16() {
    std::vector<loop<widen_function>> all;
#if defined(__x86_64__)
    if (has_512()) all.push_back({"hand AVX-512", widen_f16_512});
    if (has_256()) all.push_back({"hand F16C", widen_f16_256});
#endif
    return all;
}

std::vector<loop<narrow_function>> bfloat16_from_float() {
    std::vector<loop<narrow_function>> all;
#if defined(__x86_64__)
    if (has_512()) all.push_back({"hand AVX-512", narrow_bf16_512});
    if (has_256()) all.push_back({"hand AVX2", narrow_bf16_256});
    if (has_bfloat16()) {
        all.push_back({"vcvtne2ps2bf16, flushes subnormals", narrow_bf16_instruction, false});
    }
#endif
    return all;
}

std::vector<loop<widen_function>> float_from_bfloat16() {
    std::vector<loop<widen_function>> all;
#if defined(__x86_64__)
    if (has_512()) all.push_back({"hand AVX-512", widen_bf16_512});
    if (has_256()) all.push_back({"hand AVX2", widen_bf16_256});
#endif
    return all;
}

std::vector<loop<narrow_function>> narrow_streams() {
    std::vector<loop<narrow_function>> all;
#if defined(__x86_64__)
    if (has_512()) all.push_back({"same bytes", narrow_stream, false});
    if (has_512()) all.push_back({"same bytes, by turns", narrow_stream_by_turns, false});
#endif
    return all;
}

std::vector<loop<widen_function>> widen_streams() {
    std::vector<loop<widen_function>> all;
#if defined(__x86_64__)
    if (has_512()) all.push_back({"same bytes", widen_stream, false});
    if (has_512()) all.push_back({"same bytes, by turns", widen_stream_by_turns, false});
#endif
    return all;
}

}  // namespace bench::hand
