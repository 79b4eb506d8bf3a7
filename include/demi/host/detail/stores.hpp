// SPDX-License-Identifier: MIT
/// How whole vectors are stored: into the caches, or past them.
#pragma once

#include <demi/host/detail/lane_vectors.hpp>
#include <demi/host/isa.hpp>

#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI {
namespace detail {

inline constexpr std::size_t cache_line_bytes = 64;

/// The lanes of a vector of 16 that hold one of the next `count` elements, which are some: a store
/// without a lane costs hundreds of cycles where the next page cannot be written.
constexpr std::uint16_t first_lanes(std::size_t count) {
    return static_cast<std::uint16_t>(count < 16 ? (1u << count) - 1 : 0xffffu);
}

/// Stores to any address.
struct cached_stores {
    static constexpr bool stream = false;

#if defined(__x86_64__)
    [[DEMI_TARGET_AVX512]] static void store(void* to, const __m512i& vector) {
        _mm512_storeu_si512(to, vector);
    }
    [[DEMI_TARGET_AVX2]] static void store(void* to, const __m256i& vector) {
        _mm256_storeu_si256(static_cast<__m256i*>(to), vector);
    }
    static void store(void* to, const __m128i& vector) {
        _mm_storeu_si128(static_cast<__m128i*>(to), vector);
    }
#endif
};

/// Stores to a multiple of the vector's size, in whole cache lines at best; `finish_stream` has to
/// follow.
struct streaming_stores {
    static constexpr bool stream = true;

#if defined(__x86_64__)
    [[DEMI_TARGET_AVX512]] static void store(void* to, const __m512i& vector) {
        _mm512_stream_si512(static_cast<__m512i*>(to), vector);
    }
    [[DEMI_TARGET_AVX2]] static void store(void* to, const __m256i& vector) {
        _mm256_stream_si256(static_cast<__m256i*>(to), vector);
    }
    static void store(void* to, const __m128i& vector) {
        _mm_stream_si128(static_cast<__m128i*>(to), vector);
    }
#endif
};

/// Whether vectors stored one after the other from there on all cross cache lines, which makes them
/// slow. Streamed ones begin with a line.
template <class Stores>
bool crosses_lines(const void* to) {
    return !Stores::stream && reinterpret_cast<std::uintptr_t>(to) % cache_line_bytes != 0;
}

/// How many of `count` elements lie before a cache line that begins with an element.
template <class T>
std::size_t elements_before_line(const T* to, std::size_t count) {
    const std::size_t bytes = (0 - reinterpret_cast<std::uintptr_t>(to)) % cache_line_bytes;
    if (bytes % sizeof(T) != 0) return 0;
    return bytes / sizeof(T) < count ? bytes / sizeof(T) : count;
}

#if defined(__x86_64__)

/// Copies what fills whole cache lines, past the caches, to a boundary of one.
template <host_isa Isa>
void stream_lines(const std::byte* from, std::byte* to, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += sizeof(__m128i)) {
        streaming_stores::store(to + i,
                                _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
}

template <>
[[DEMI_TARGET_AVX2]] inline void stream_lines<host_isa::avx2>(const std::byte* from, std::byte* to,
                                                              std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += sizeof(__m256i)) {
        streaming_stores::store(to + i,
                                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
    }
}

template <>
[[DEMI_TARGET_AVX512]] inline void stream_lines<host_isa::avx512>(const std::byte* from,
                                                                  std::byte* to,
                                                                  std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += sizeof(__m512i)) {
        streaming_stores::store(to + i, _mm512_loadu_si512(from + i));
    }
}

/// Other threads see what was streamed before what this thread stores after this.
inline void finish_stream() { _mm_sfence(); }

#else

template <host_isa>
void stream_lines(const std::byte* from, std::byte* to, std::size_t bytes) {
    __builtin_memcpy(to, from, bytes);
}

inline void finish_stream() {}

#endif

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
