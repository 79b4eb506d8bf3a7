// SPDX-License-Identifier: MIT
/// From the sums that a warp holds to lines of the result, by way of shared memory.
#pragma once

#include <demi/cuda/detail/gemm_product.cuh>
#include <demi/cuda/detail/gemm_stores.cuh>

#include <cstddef>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

/// How many values of a line of the result a lane stores at once: 16 bytes, and not above 8 values.
template <class T>
inline constexpr int line_piece_length = sizeof(T) >= 2 ? 16 / static_cast<int>(sizeof(T)) : 8;

/// Writes `Columns` sums of each of 16 rows that stand in the warp's own shared memory, with
/// `Columns` + 8 floats from row to row: so no bank is asked twice at once.
template <int Columns, class Product>
struct line_writer {
    static constexpr int row_length = Columns + 8;

    const Product& product;
    const block_part& part;
    typename Product::result* to;
    float* turn;
    typename Product::worker& worker;

    /// What accumulators of a tensor-core instruction hold: lane by lane two sums of row
    /// lane / 4, and two of the row 8 further.
    __device__ void put(int column, const float (&sums)[4]) const {
        const int lane = threadIdx.x % 32;
        float* const at = turn + lane / 4 * row_length + column + lane % 4 * 2;
        store_shared_pair(at, sums[0], sums[1]);
        store_shared_pair(at + 8 * row_length, sums[2], sums[3]);
    }

    /// Between `put` and the next `put`: finishes the sums and stores them.
    __device__ void write(std::size_t row, std::size_t column) const {
        const bool in_pieces = part.partials == nullptr && product.has_wide_lines;
        __syncwarp();
        if (!in_pieces || !product.only_scales()) {
            finish_each(row, column, in_pieces);
            __syncwarp();
        }
        if (in_pieces) {
            write_pieces(row, column);
            __syncwarp();
        }
    }

private:
    using result = typename Product::result;

    /// Lanes side by side in a row: what an epilogue reads and writes is contiguous. `keep`: the
    /// values stay in shared memory.
    __device__ void finish_each(std::size_t row, std::size_t column, bool keep) const {
        const int lane = threadIdx.x % 32;
        const int rows = static_cast<int>(::min(product.rows - row, std::size_t{16}));
        // Few copies of what may be a long function.
#pragma unroll 1
        for (int i = lane; i < Columns; i += 32) {
            if (column + i >= product.columns) break;
#pragma unroll 4
            for (int r = 0; r < rows; ++r) {
                finish_one(turn[r * row_length + i], row + r, column + i, keep);
            }
        }
    }

    __device__ void finish_one(float& sum, std::size_t row, std::size_t column, bool keep) const {
        if (part.partials != nullptr) {
            part.partials[row * product.columns + column] = sum;
            return;
        }
        const float value = product.finished(sum, row, column, to, worker);
        if (keep) {
            sum = value;
        } else {
            to[row * product.c_leading + column] = narrowed<result>(value);
        }
    }

    __device__ void write_pieces(std::size_t row, std::size_t column) const {
        constexpr int length = line_piece_length<result>;
        constexpr int lanes = Columns / length;
        const int lane = threadIdx.x % 32;
        const float factor = product.only_scales() ? product.alpha : 1.0f;
        const int piece_column = lane % lanes * length;
#pragma unroll 1
        for (int first = 0; first < 16; first += 32 / lanes) {
            const int r = first + lane / lanes;
            float sums[length];
            read_sums(sums, r, piece_column);
            if (row + r >= product.rows || column + piece_column >= product.columns) continue;
            value_group<result, length> piece;
#pragma unroll
            for (int i = 0; i < length; ++i) {
                piece.values[i] = narrowed<result>(sums[i] * factor);
            }
            result* const at = to + (row + r) * product.c_leading + column + piece_column;
            if (column + piece_column + length <= product.columns) {
                store_together(at, piece);
            } else {
#pragma unroll
                for (int i = 0; i < length; ++i) {
                    if (column + piece_column + i < product.columns) at[i] = piece.values[i];
                }
            }
        }
    }

    /// Half of the lanes read the second four values first, for those of the others are in the same
    /// banks.
    template <int Length>
    __device__ void read_sums(float (&sums)[Length], int row, int column) const {
        const float* const from = turn + row * row_length + column;
        if constexpr (Length == 4) {
            put_four(sums, 0, load_shared_four(from));
        } else {
            static_assert(Length == 8);
            const int early = threadIdx.x / 4 % 2;
            const float4 one = load_shared_four(from + 4 * early);
            const float4 other = load_shared_four(from + 4 * (1 - early));
            put_four(sums, 0, early == 0 ? one : other);
            put_four(sums, 4, early == 0 ? other : one);
        }
    }

    template <int Length>
    static __device__ void put_four(float (&to)[Length], int at, const float4& from) {
        to[at] = from.x;
        to[at + 1] = from.y;
        to[at + 2] = from.z;
        to[at + 3] = from.w;
    }
};

}  // namespace demi::inline DEMI_ABI::detail
