// SPDX-License-Identifier: MIT
/// The innermost part of a GEMM: tiles of the result that stay in registers, per instruction set.
#pragma once

#include <demi/host/detail/dispatch.hpp>
#include <demi/host/detail/lane_vectors.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace demi::inline DEMI_ABI {
namespace detail {

/// Calls `work.run<Isa>()` in a function compiled for that instruction set, and for no other.
template <host_isa Isa, class Work>
void run_for(const Work& work) {
#if defined(__x86_64__)
    if constexpr (Isa >= host_isa::avx512) return run_avx512(work);
    if constexpr (Isa == host_isa::avx2) return run_avx2(work);
#endif
    if constexpr (Isa == host_isa::portable) run_portable(work);
}

template <std::size_t Lanes>
using float_vector = vector<float, static_cast<int>(Lanes)>;

/// The same anywhere in memory.
template <std::size_t Lanes>
using stored_float_vector = typename vector_of<float, static_cast<int>(Lanes)>::unaligned;

/// Whether a packed value is a word of two bfloat16 numbers, neighbours along the sums, instead of
/// a float. A word counts as one step of the sums.
template <host_isa Isa>
inline constexpr bool packs_pairs = Isa == host_isa::avx512_bf16;

/// Memory that is asked for while a tile is computed, since nothing else would foresee its use:
/// `lines` lines, `stride` bytes apart, as far along as the steps get.
struct tile_prefetch {
    const char* from = nullptr;
    std::size_t lines = 0;
    std::size_t stride = 0;

    static constexpr std::size_t cache_line_bytes = 64;
    /// Steps for each cache line of each of the lines.
    static constexpr std::size_t steps = 16;

    DEMI_HOST_KERNEL void get(std::size_t index) const {
        const char* at = from + index * cache_line_bytes;
        for (std::size_t i = 0; i < lines; ++i) {
            __builtin_prefetch(at, 0, 2);
            at += stride;
        }
    }
};

/// Where a tile lies and what it is made of.
struct gemm_tile {
    std::size_t depth;  ///< steps of the sums
    const char* a;
    std::size_t a_row;   ///< bytes from one row of `a` to the next
    std::size_t a_step;  ///< bytes from one step to the next
    const float* b;      ///< the columns of one step beside each other
    std::size_t b_step;
    float* c;  ///< row-major, `c_stride` from row to row
    std::size_t c_stride;
    bool add;  ///< whether to start from what is in `c`
    tile_prefetch ahead = {};
    float* packed = nullptr;  ///< where a tile that packs its columns puts them
};

/// The tile that the registers of an instruction set hold: `rows` times `vectors`. Few rows, so
/// that the lines of rows a power of two apart find room in the sets of the first level.
template <host_isa Isa>
struct tile_shape {
    static constexpr std::size_t lanes = lane_count<Isa>;
    static constexpr std::size_t rows = Isa >= host_isa::avx2 ? 6 : 4;
    static constexpr std::size_t vectors = Isa >= host_isa::avx512 ? 4 : 2;
    static constexpr std::size_t columns = vectors * lanes;
};

template <host_isa Isa>
struct pair_step;

#if defined(__x86_64__)
/// One step with words: a word of one row for all columns, and the products of both halves.
template <>
struct pair_step<host_isa::avx512_bf16> {
    [[DEMI_TARGET_AVX512_BF16]] static void broadcast(float_vector<16>& to, const char* from) {
        std::int32_t word;
        __builtin_memcpy(&word, from, sizeof word);
        to = float_vector<16>(_mm512_set1_epi32(word));
    }
    [[DEMI_TARGET_AVX512_BF16]] static void add_product(float_vector<16>& sums,
                                                        const float_vector<16>& a,
                                                        const float_vector<16>& columns) {
        sums = _mm512_dpbf16_ps(sums, __m512bh(a), __m512bh(columns));
    }
};
#endif

/// `c = a b` or `c += a b` for a tile of `Rows` rows and `Vectors` vectors of columns. Each element
/// is one chain of multiply-adds in the order of the sum: its bits do not depend on the tile.
/// With `Packs` it also packs its columns for the tiles below.
template <std::size_t Rows, std::size_t Vectors, bool Packs>
struct multiply_tile {
    const gemm_tile& tile;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        constexpr std::size_t lanes = tile_shape<Isa>::lanes;
        using factors = float_vector<lanes>;
        using stored = stored_float_vector<lanes>;
        factors sums[Rows][Vectors] = {};
        if (tile.add) {
#pragma GCC unroll 16
            for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
                for (std::size_t v = 0; v < Vectors; ++v) {
                    sums[r][v] = *reinterpret_cast<const stored*>(place(r, v * lanes));
                }
            }
        }
        // Three rows share a pointer: there are not enough registers for all.
        constexpr std::size_t pointers = (Rows + 2) / 3;
        const char* a[pointers];
        const std::size_t a_row = tile.a_row;
        const std::size_t a_step = tile.a_step;
#pragma GCC unroll 8
        for (std::size_t i = 0; i < pointers; ++i) a[i] = tile.a + 3 * i * a_row;
        const float* b = tile.b;
        const std::size_t b_step = tile.b_step;
        float* packed = tile.packed;
        for (std::size_t k = 0; k < tile.depth; ++k) {
            if (k % tile_prefetch::steps == 0) tile.ahead.get(k / tile_prefetch::steps);
            factors columns[Vectors];
#pragma GCC unroll 4
            for (std::size_t v = 0; v < Vectors; ++v) {
                columns[v] = *reinterpret_cast<const stored*>(b + v * lanes);
            }
            if constexpr (Packs) {
#pragma GCC unroll 4
                for (std::size_t v = 0; v < Vectors; ++v) {
                    __builtin_prefetch(b + packing_distance * b_step + v * lanes);
                    *reinterpret_cast<stored*>(packed + v * lanes) = columns[v];
                }
                packed += Vectors * lanes;
            }
#pragma GCC unroll 16
            for (std::size_t r = 0; r < Rows; ++r) {
                const char* const from = a[r / 3] + r % 3 * a_row;
                if constexpr (packs_pairs<Isa>) {
                    factors row;
                    pair_step<Isa>::broadcast(row, from);
#pragma GCC unroll 4
                    for (std::size_t v = 0; v < Vectors; ++v) {
                        pair_step<Isa>::add_product(sums[r][v], row, columns[v]);
                    }
                } else {
                    const factors row = *reinterpret_cast<const float*>(from) - factors{};
#pragma GCC unroll 4
                    for (std::size_t v = 0; v < Vectors; ++v) sums[r][v] += row * columns[v];
                }
            }
#pragma GCC unroll 8
            for (std::size_t i = 0; i < pointers; ++i) a[i] += a_step;
            b += b_step;
        }
#pragma GCC unroll 16
        for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
            for (std::size_t v = 0; v < Vectors; ++v) {
                *reinterpret_cast<stored*>(place(r, v * lanes)) = sums[r][v];
            }
        }
    }

private:
    /// Steps ahead at which memory is asked for that the processor cannot foresee.
    static constexpr std::size_t packing_distance = 8;

    DEMI_HOST_KERNEL float* place(std::size_t row, std::size_t column) const {
        return tile.c + row * tile.c_stride + column;
    }
};

#if defined(__x86_64__)
template <class Work>
[[DEMI_TARGET_AVX512_BF16, gnu::flatten]] void run_dot_products(const Work& work) {
    work.template run<host_isa::avx512_bf16>();
}
#endif

using multiply_function = void (*)(const gemm_tile&);

template <host_isa Isa, std::size_t Rows, std::size_t Vectors, bool Packs = false>
void multiply(const gemm_tile& tile) {
    const multiply_tile<Rows, Vectors, Packs> work{tile};
    if constexpr (packs_pairs<Isa>) {
        run_dot_products(work);
    } else {
        run_for<Isa>(work);
    }
}

template <host_isa Isa, std::size_t... Index>
constexpr auto multiply_functions(std::index_sequence<Index...>) {
    constexpr std::size_t rows = tile_shape<Isa>::rows;
    return std::array<multiply_function, sizeof...(Index)>{
        &multiply<Isa, Index % rows + 1, Index / rows + 1>...};
}

/// The function for tiles of `rows` rows that hold at least `columns` columns.
template <host_isa Isa>
multiply_function multiply_function_for(std::size_t rows, std::size_t columns) {
    using tile = tile_shape<Isa>;
    static constexpr auto functions =
        multiply_functions<Isa>(std::make_index_sequence<tile::rows * tile::vectors>{});
    return functions[(columns - 1) / tile::lanes * tile::rows + rows - 1];
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
