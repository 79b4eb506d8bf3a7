// SPDX-License-Identifier: MIT
/// Transposition of a small tile of elements, whatever they mean.
#pragma once

#include <demi/host/detail/lane_vectors.hpp>
#include <demi/host/isa.hpp>

#include <cstddef>

namespace demi::inline DEMI_ABI {
namespace detail {

/// A matrix of whole elements: `pitch` of them from one row to the next.
template <class T>
struct tile_rows {
    T* first;
    std::size_t pitch;

    T* at(std::size_t row, std::size_t column) const { return first + row * pitch + column; }
};

/// Tiles of this many rows and columns are transposed by unpacking registers.
template <class T>
inline constexpr std::size_t unpacked_side = 1;

#if defined(__x86_64__)

template <class T>
    requires(sizeof(T) == 4)
inline constexpr std::size_t unpacked_side<T> = 4;

template <class T>
    requires(sizeof(T) == 2)
inline constexpr std::size_t unpacked_side<T> = 8;

template <class T>
    requires(sizeof(T) == 4)
inline void transpose_unpacked(const tile_rows<const T>& from, const tile_rows<T>& to) {
    const auto load = [&](std::size_t row) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.at(row, 0)));
    };
    const auto store = [&](std::size_t row, __m128i value) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to.at(row, 0)), value);
    };
    const __m128i a = load(0), b = load(1), c = load(2), d = load(3);
    const __m128i ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
    const __m128i cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);
    store(0, _mm_unpacklo_epi64(ab_low, cd_low));
    store(1, _mm_unpackhi_epi64(ab_low, cd_low));
    store(2, _mm_unpacklo_epi64(ab_high, cd_high));
    store(3, _mm_unpackhi_epi64(ab_high, cd_high));
}

template <class T>
    requires(sizeof(T) == 2)
inline void transpose_unpacked(const tile_rows<const T>& from, const tile_rows<T>& to) {
    // Loops that -O2 leaves alone would keep the rows in memory.
    __m128i rows[8], pairs[8], fours[8];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) {
        rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.at(i, 0)));
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 8; i += 2) {
        pairs[i] = _mm_unpacklo_epi16(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm_unpackhi_epi16(rows[i], rows[i + 1]);
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 8; i += 4) {
        fours[i] = _mm_unpacklo_epi32(pairs[i], pairs[i + 2]);
        fours[i + 1] = _mm_unpackhi_epi32(pairs[i], pairs[i + 2]);
        fours[i + 2] = _mm_unpacklo_epi32(pairs[i + 1], pairs[i + 3]);
        fours[i + 3] = _mm_unpackhi_epi32(pairs[i + 1], pairs[i + 3]);
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to.at(2 * i, 0)),
                         _mm_unpacklo_epi64(fours[i], fours[i + 4]));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to.at(2 * i + 1, 0)),
                         _mm_unpackhi_epi64(fours[i], fours[i + 4]));
    }
}

/// Blocks of twice as many rows as columns: the lower halves of the registers take the first rows,
/// the upper halves the others.
template <class T>
    requires(sizeof(T) == 4)
[[DEMI_TARGET_AVX2]] inline void transpose_halves(const tile_rows<const T>& from,
                                                  const tile_rows<T>& to) {
    __m256i rows[4], pairs[4];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
        rows[i] = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(from.at(i + 4, 0)),
                                      reinterpret_cast<const __m128i*>(from.at(i, 0)));
    }
#pragma GCC unroll 2
    for (std::size_t i = 0; i < 4; i += 2) {
        pairs[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
    }
#pragma GCC unroll 2
    for (std::size_t i = 0; i < 2; ++i) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.at(2 * i, 0)),
                            _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.at(2 * i + 1, 0)),
                            _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]));
    }
}

template <class T>
    requires(sizeof(T) == 2)
[[DEMI_TARGET_AVX2]] inline void transpose_halves(const tile_rows<const T>& from,
                                                  const tile_rows<T>& to) {
    __m256i rows[8], pairs[8], fours[8];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) {
        rows[i] = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(from.at(i + 8, 0)),
                                      reinterpret_cast<const __m128i*>(from.at(i, 0)));
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_epi16(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_epi16(rows[i], rows[i + 1]);
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 8; i += 4) {
        fours[i] = _mm256_unpacklo_epi32(pairs[i], pairs[i + 2]);
        fours[i + 1] = _mm256_unpackhi_epi32(pairs[i], pairs[i + 2]);
        fours[i + 2] = _mm256_unpacklo_epi32(pairs[i + 1], pairs[i + 3]);
        fours[i + 3] = _mm256_unpackhi_epi32(pairs[i + 1], pairs[i + 3]);
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.at(2 * i, 0)),
                            _mm256_unpacklo_epi64(fours[i], fours[i + 4]));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.at(2 * i + 1, 0)),
                            _mm256_unpackhi_epi64(fours[i], fours[i + 4]));
    }
}

/// Transposes whole blocks and returns how many rows of `from` that were.
template <class T>
[[DEMI_TARGET_AVX2]] std::size_t transpose_wide_blocks(const tile_rows<const T>& from,
                                                       const tile_rows<T>& to, std::size_t rows,
                                                       std::size_t columns) {
    constexpr std::size_t side = unpacked_side<T>;
    const std::size_t whole = rows - rows % (2 * side);
    for (std::size_t r = 0; r < whole; r += 2 * side) {
        for (std::size_t c = 0; c < columns; c += side) {
            transpose_halves(tile_rows<const T>{from.at(r, c), from.pitch},
                             tile_rows<T>{to.at(c, r), to.pitch});
        }
    }
    return whole;
}

#endif

/// Element (r, c) of `from` becomes (c, r) of `to`, for `rows` x `columns` elements of `from`.
template <class T>
void transpose_tile([[maybe_unused]] host_isa isa, const tile_rows<const T>& from,
                    const tile_rows<T>& to, std::size_t rows, std::size_t columns) {
    constexpr std::size_t side = unpacked_side<T>;
    const std::size_t whole_rows = rows - rows % side;
    const std::size_t whole_columns = columns - columns % side;
    const auto move_elements = [&](std::size_t row, std::size_t end_row, std::size_t column,
                                   std::size_t end_column) {
        for (std::size_t r = row; r < end_row; ++r) {
            for (std::size_t c = column; c < end_column; ++c) {
                __builtin_memcpy(static_cast<void*>(to.at(c, r)), from.at(r, c), sizeof(T));
            }
        }
    };
    if constexpr (side == 1) {
        move_elements(0, rows, 0, columns);
    } else {
        // Along the rows of the source: it may lie so that its lines drive each other out of the
        // cache.
        std::size_t r = 0;
#if defined(__x86_64__)
        if (isa >= host_isa::avx2) r = transpose_wide_blocks(from, to, rows, whole_columns);
#endif
        for (; r < whole_rows; r += side) {
            for (std::size_t c = 0; c < whole_columns; c += side) {
                transpose_unpacked(tile_rows<const T>{from.at(r, c), from.pitch},
                                   tile_rows<T>{to.at(c, r), to.pitch});
            }
        }
        move_elements(0, whole_rows, whole_columns, columns);
        move_elements(whole_rows, rows, 0, columns);
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
