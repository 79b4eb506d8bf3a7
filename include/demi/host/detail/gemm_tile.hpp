// SPDX-License-Identifier: MIT
/// The innermost part of a GEMM: tiles of the result that stay in registers, per instruction set.
#pragma once

#include <demi/host/detail/dispatch.hpp>
#include <demi/host/detail/lane_vectors.hpp>

#include <array>
#include <cstddef>
#include <utility>

namespace demi::inline DEMI_ABI {
namespace detail {

template <std::size_t Lanes>
using float_vector = vector<float, static_cast<int>(Lanes)>;

/// The same anywhere in memory.
template <std::size_t Lanes>
using stored_float_vector = typename vector_of<float, static_cast<int>(Lanes)>::unaligned;

/// Where a tile lies and what it is made of.
struct gemm_tile {
    std::size_t depth;  ///< length of the sums
    const float* a;     ///< packed: the values of one step of the sums after the other
    const float* b;     ///< the same, `b_stride` apart
    std::size_t b_stride;
    float* c;  ///< row-major, `c_stride` from row to row
    std::size_t c_stride;
    bool add;  ///< whether to start from what is in `c`
};

/// The tile that the registers of an instruction set hold.
template <host_isa Isa>
struct tile_shape {
    static constexpr std::size_t lanes = lane_count<Isa>;
    static constexpr std::size_t rows = Isa == host_isa::avx512 ? 14
                                        : Isa == host_isa::avx2 ? 6
                                                                : 4;
    static constexpr std::size_t vectors = 2;
    static constexpr std::size_t columns = vectors * lanes;
};

/// `c = a b` or `c += a b` for a tile of `Rows` rows and `Vectors` vectors of columns. Each element
/// is one chain of multiply-adds in the order of the sum: its bits do not depend on the tile.
template <std::size_t Rows, std::size_t Vectors>
struct multiply_tile {
    const gemm_tile& tile;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        constexpr std::size_t lanes = tile_shape<Isa>::lanes;
        using vector_type = float_vector<lanes>;
        using stored = stored_float_vector<lanes>;
        vector_type sums[Rows][Vectors] = {};
        if (tile.add) {
#pragma GCC unroll 16
            for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
                for (std::size_t v = 0; v < Vectors; ++v) {
                    sums[r][v] = *reinterpret_cast<const stored*>(place(r, v * lanes));
                }
            }
        }
        const float* a = tile.a;
        const float* b = tile.b;
        const std::size_t b_stride = tile.b_stride;
        for (std::size_t k = tile.depth; k != 0; --k) {
            vector_type columns[Vectors];
#pragma GCC unroll 4
            for (std::size_t v = 0; v < Vectors; ++v) {
                columns[v] = *reinterpret_cast<const stored*>(b + v * lanes);
            }
#pragma GCC unroll 16
            for (std::size_t r = 0; r < Rows; ++r) {
                const vector_type row = a[r] - vector_type{};
#pragma GCC unroll 4
                for (std::size_t v = 0; v < Vectors; ++v) sums[r][v] += row * columns[v];
            }
            a += Rows;
            b += b_stride;
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
    DEMI_HOST_KERNEL float* place(std::size_t row, std::size_t column) const {
        return tile.c + row * tile.c_stride + column;
    }
};

using multiply_function = void (*)(const gemm_tile&);

template <host_isa Isa, std::size_t Rows, std::size_t Vectors>
void multiply(const gemm_tile& tile) {
    run_on(Isa, multiply_tile<Rows, Vectors>{tile});
}

template <host_isa Isa, std::size_t Vectors, std::size_t... Row>
constexpr auto multiply_functions(std::index_sequence<Row...>) {
    return std::array<multiply_function, sizeof...(Row)>{&multiply<Isa, Row + 1, Vectors>...};
}

/// The function for tiles of `rows` rows and one vector of columns, or a full width of them.
template <host_isa Isa>
multiply_function multiply_function_for(std::size_t rows, bool full_width) {
    constexpr auto sizes = std::make_index_sequence<tile_shape<Isa>::rows>{};
    static constexpr auto full = multiply_functions<Isa, tile_shape<Isa>::vectors>(sizes);
    static constexpr auto narrow = multiply_functions<Isa, 1>(sizes);
    return full_width ? full[rows - 1] : narrow[rows - 1];
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
