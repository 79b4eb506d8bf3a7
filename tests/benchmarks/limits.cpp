// SPDX-License-Identifier: MIT
#include "limits.hpp"

#include "arrays.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench::limits {

namespace {

using copy_function = void (*)(const char*, char*, std::size_t);
using read_function = void (*)(const char*, std::size_t);
using update_function = void (*)(const update_streams&, std::size_t, std::size_t);
using peak_function = void (*)();

constexpr std::size_t peak_steps = 4096;
constexpr std::size_t chains = 12;

/// Where results go, so that they cannot be left out.
volatile float sink = 0;
volatile float zero = 0;

void copy_memcpy(const char* from, char* to, std::size_t bytes) { std::memcpy(to, from, bytes); }

#if defined(__x86_64__)

[[gnu::target("avx512f")]] void copy_512(const char* from, char* to, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 64) {
        _mm512_storeu_si512(to + i, _mm512_loadu_si512(from + i));
    }
}

[[gnu::target("avx512f")]] void copy_nontemporal_512(const char* from, char* to,
                                                     std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 64) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
    }
    _mm_sfence();
}

[[gnu::target("avx2")]] void copy_256(const char* from, char* to, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 32) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
    }
}

[[gnu::target("avx2")]] void copy_nontemporal_256(const char* from, char* to, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 32) {
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
    }
    _mm_sfence();
}

[[gnu::target("avx512f")]] void read_512(const char* from, std::size_t bytes) {
    __m512i a = _mm512_setzero_si512();
    __m512i b = a, c = a, d = a;
    for (std::size_t i = 0; i + 256 <= bytes; i += 256) {
        a = _mm512_or_si512(a, _mm512_loadu_si512(from + i));
        b = _mm512_or_si512(b, _mm512_loadu_si512(from + i + 64));
        c = _mm512_or_si512(c, _mm512_loadu_si512(from + i + 128));
        d = _mm512_or_si512(d, _mm512_loadu_si512(from + i + 192));
    }
    const __m512i all = _mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d));
    std::int32_t words[16];
    _mm512_storeu_si512(words, all);
    sink = static_cast<float>(words[0]);
}

[[gnu::target("avx2")]] void read_256(const char* from, std::size_t bytes) {
    const auto load = [from](std::size_t at) __attribute__((target("avx2"), always_inline)) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at));
    };
    __m256i a = _mm256_setzero_si256();
    __m256i b = a, c = a, d = a;
    for (std::size_t i = 0; i + 128 <= bytes; i += 128) {
        a = _mm256_or_si256(a, load(i));
        b = _mm256_or_si256(b, load(i + 32));
        c = _mm256_or_si256(c, load(i + 64));
        d = _mm256_or_si256(d, load(i + 96));
    }
    const __m256i all = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
    sink = static_cast<float>(_mm_cvtsi128_si32(_mm256_castsi256_si128(all)));
}

/// A whole vector of gradients: half as many bytes fill the lower half only.
[[gnu::target("avx512f")]] void update_512(const update_streams& s, std::size_t begin,
                                           std::size_t end) {
    const __m512 nothing = _mm512_set1_ps(zero);
    const char* const gradients = static_cast<const char*>(s.gradients);
    char* const copy = static_cast<char*>(s.copy);
    for (std::size_t i = begin; i < end; i += 16) {
        const char* const from = gradients + i * s.gradient_bytes;
        const __m512i gradient =
            s.gradient_bytes == 4 ? _mm512_loadu_si512(from)
                                  : _mm512_castsi256_si512(
                                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
        const __m512 weight = _mm512_add_ps(_mm512_loadu_ps(s.weights + i), nothing);
        const __m512 mean = _mm512_add_ps(_mm512_loadu_ps(s.means + i), nothing);
        const __m512 square = _mm512_add_ps(_mm512_loadu_ps(s.squares + i), nothing);
        _mm512_storeu_ps(s.weights + i, weight);
        _mm512_storeu_ps(s.means + i, mean);
        _mm512_storeu_ps(s.squares + i, square);
        const __m512i mixed = _mm512_or_si512(gradient, _mm512_castps_si512(weight));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(copy + 2 * i),
                            _mm512_castsi512_si256(mixed));
    }
}

[[gnu::target("avx2")]] void update_256(const update_streams& s, std::size_t begin,
                                        std::size_t end) {
    const __m256 nothing = _mm256_set1_ps(zero);
    const char* const gradients = static_cast<const char*>(s.gradients);
    char* const copy = static_cast<char*>(s.copy);
    for (std::size_t i = begin; i < end; i += 8) {
        const char* const from = gradients + i * s.gradient_bytes;
        const __m128i gradient = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
        const __m128i rest = s.gradient_bytes == 4
                                 ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16))
                                 : gradient;
        const __m256 weight = _mm256_add_ps(_mm256_loadu_ps(s.weights + i), nothing);
        const __m256 mean = _mm256_add_ps(_mm256_loadu_ps(s.means + i), nothing);
        const __m256 square = _mm256_add_ps(_mm256_loadu_ps(s.squares + i), nothing);
        _mm256_storeu_ps(s.weights + i, weight);
        _mm256_storeu_ps(s.means + i, mean);
        _mm256_storeu_ps(s.squares + i, square);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(copy + 2 * i), _mm_or_si128(gradient, rest));
    }
}

[[gnu::target("avx512f")]] void peak_512() {
    const __m512 x = _mm512_set1_ps(0.999f + zero);
    const __m512 y = _mm512_set1_ps(0.001f + zero);
    __m512 s[chains];
    for (auto& chain : s) chain = y;
    for (std::size_t i = 0; i < peak_steps; ++i) {
#pragma GCC unroll 12
        for (std::size_t chain = 0; chain < chains; ++chain) {
            s[chain] = _mm512_fmadd_ps(s[chain], x, y);
        }
    }
    __m512 sum = s[0];
#pragma GCC unroll 12
    for (std::size_t chain = 1; chain < chains; ++chain) sum = _mm512_add_ps(sum, s[chain]);
    sink = _mm512_cvtss_f32(sum);
}

[[gnu::target("avx2,fma")]] void peak_256() {
    const __m256 x = _mm256_set1_ps(0.999f + zero);
    const __m256 y = _mm256_set1_ps(0.001f + zero);
    __m256 s[chains];
    for (auto& chain : s) chain = y;
    for (std::size_t i = 0; i < peak_steps; ++i) {
#pragma GCC unroll 12
        for (std::size_t chain = 0; chain < chains; ++chain) {
            s[chain] = _mm256_fmadd_ps(s[chain], x, y);
        }
    }
    __m256 sum = s[0];
#pragma GCC unroll 12
    for (std::size_t chain = 1; chain < chains; ++chain) sum = _mm256_add_ps(sum, s[chain]);
    sink = _mm256_cvtss_f32(sum);
}

[[gnu::target("avx512f,avx512bf16")]] void peak_bfloat16() {
    const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f003f00));
    const auto y = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3e803e80));
    __m512 s[chains];
    for (auto& chain : s) chain = _mm512_set1_ps(zero);
    for (std::size_t i = 0; i < peak_steps; ++i) {
#pragma GCC unroll 12
        for (std::size_t chain = 0; chain < chains; ++chain) {
            s[chain] = _mm512_dpbf16_ps(s[chain], x, y);
        }
    }
    __m512 sum = s[0];
#pragma GCC unroll 12
    for (std::size_t chain = 1; chain < chains; ++chain) sum = _mm512_add_ps(sum, s[chain]);
    sink = _mm512_cvtss_f32(sum);
}

bool has_512() { return __builtin_cpu_supports("avx512f") != 0; }
bool has_256() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }
bool has_bfloat16() { return __builtin_cpu_supports("avx512bf16") != 0; }

#endif

contender make_copy(const char* name, copy_function function, const void* from, void* to,
                    std::size_t bytes, std::size_t threads) {
    const auto* const source = static_cast<const char*>(from);
    auto* const target = static_cast<char*>(to);
    return {name, role::limit, 2.0 * static_cast<double>(bytes), [=] {
                share_out(threads, bytes, [&](std::size_t begin, std::size_t end) {
                    function(source + begin, target + begin, end - begin);
                });
            }};
}

/// Every thread runs the whole chain.
contender make_peak(const char* name, peak_function function, double flops, std::size_t threads) {
    const double work = flops * static_cast<double>(chains * peak_steps * threads);
    return {name, role::limit, work, [=] {
                share_out(threads, threads * 4096, [&](std::size_t, std::size_t) { function(); });
            }};
}

}  // namespace

std::vector<contender> copies(const void* from, void* to, std::size_t bytes, std::size_t threads) {
    const auto make = [&](const char* name, copy_function function) {
        return make_copy(name, function, from, to, bytes, threads);
    };
    std::vector<contender> all{make("memcpy", copy_memcpy)};
#if defined(__x86_64__)
    if (has_512()) {
        all.push_back(make("copy, 512 bit", copy_512));
        all.push_back(make("copy, 512 bit non-temporal", copy_nontemporal_512));
    } else if (has_256()) {
        all.push_back(make("copy, 256 bit", copy_256));
        all.push_back(make("copy, 256 bit non-temporal", copy_nontemporal_256));
    }
#endif
    return all;
}

std::vector<contender> reads(const void* from, std::size_t bytes, std::size_t threads) {
    std::vector<contender> all;
#if defined(__x86_64__)
    const auto* const source = static_cast<const char*>(from);
    const auto make = [&](const char* name, read_function function) {
        all.push_back({name, role::limit, static_cast<double>(bytes), [=] {
                           share_out(threads, bytes, [&](std::size_t begin, std::size_t end) {
                               function(source + begin, end - begin);
                           });
                       }});
    };
    if (has_512()) make("read, 512 bit", read_512);
    if (has_256()) make("read, 256 bit", read_256);
#endif
    return all;
}

std::vector<contender> updates(const update_streams& arrays, std::size_t threads) {
    std::vector<contender> all;
#if defined(__x86_64__)
    const auto make = [&](const char* name, update_function function) {
        all.push_back({name, role::limit, arrays.bytes(), [=] {
                           share_out(threads, arrays.count,
                                     [&](std::size_t begin, std::size_t end) {
                                         function(arrays, begin, end);
                                     });
                       }});
    };
    if (has_512()) make("streams, 512 bit", update_512);
    if (has_256()) make("streams, 256 bit", update_256);
#endif
    return all;
}

contender fma_peak(std::size_t threads) {
#if defined(__x86_64__)
    if (has_512()) return make_peak("FMA peak", peak_512, 32, threads);
    if (has_256()) return make_peak("FMA peak", peak_256, 16, threads);
#endif
    return {"FMA peak", role::limit, 1, {}};
}

contender bfloat16_peak(std::size_t threads) {
#if defined(__x86_64__)
    if (has_bfloat16()) return make_peak("bf16 dot peak", peak_bfloat16, 64, threads);
#endif
    return fma_peak(threads);
}

}  // namespace bench::limits
