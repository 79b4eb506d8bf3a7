// SPDX-License-Identifier: MIT
/// From the sums that a warp holds to lines of 16-bit values, when nothing but a factor is between.
#pragma once

#include <demi/cuda/detail/gemm_product.cuh>
#include <demi/cuda/detail/gemm_stores.cuh>

#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// What a pair of values becomes, the first one in the lower half. A NaN loses what it carries,
/// which that of a multiplication does not: all of its bits are 1 but the sign.
template <class To>
__device__ std::uint32_t narrowed_pair(float first, float second) {
    std::uint32_t pair;
    if constexpr (is_binary16<To>) {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    } else {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    }
    return pair;
}

/// As `line_writer`, but rounds before the turn through shared memory: half of its reads and
/// writes, and an eighth of the instructions. 64 columns at a time, 16 bytes more than that from
/// row to row, so that no bank is asked twice at once.
template <class Product>
struct narrow_line_writer {
    using result = typename Product::result;
    static constexpr bool can_round = is_binary16<result> || is_brain16<result>;
    static constexpr int columns = 64;
    static constexpr int row_words = columns / 2 + 4;

    const Product& product;
    result* to;
    std::uint32_t* turn;

    /// Whether it can write this part: its lines in pieces of 16 bytes, each value by itself.
    __device__ bool serves(const block_part& part) const {
        return part.partials == nullptr && product.has_wide_lines && product.only_scales();
    }

    /// `sums`: of eight groups of 8 columns, as `line_writer::put` takes them.
    __device__ void put(const float (*sums)[4]) const {
        const int lane = threadIdx.x % 32;
        std::uint32_t* const at = turn + lane / 4 * row_words + lane % 4;
        const float factor = product.alpha;
#pragma unroll
        for (int i = 0; i < columns / 8; ++i) {
            at[4 * i] = narrowed_pair<result>(sums[i][0] * factor, sums[i][1] * factor);
            at[4 * i + 8 * row_words] =
                narrowed_pair<result>(sums[i][2] * factor, sums[i][3] * factor);
        }
    }

    /// Between `put` and the next `put`.
    __device__ void write(std::size_t row, std::size_t column) const {
        __syncwarp();
        const int lane = threadIdx.x % 32;
        const std::size_t piece_column = column + lane % 8 * 8;
        result* at = to + (row + lane / 8) * product.c_leading + piece_column;
#pragma unroll
        for (int r = lane / 8; r < 16; r += 4) {
            const auto* const from = turn + r * row_words + lane % 8 * 4;
            const auto piece = __builtin_bit_cast(pieces, *reinterpret_cast<const uint4*>(from));
            if (row + r < product.rows) store(at, piece, piece_column);
            at += 4 * product.c_leading;
        }
        __syncwarp();
    }

private:
    using pieces = value_group<result, 8>;

    __device__ void store(result* at, const pieces& piece, std::size_t column) const {
        if (column + 8 <= product.columns) {
            store_together(at, piece);
            return;
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (column + i < product.columns) at[i] = piece.values[i];
        }
    }
};

}  // namespace demi::inline DEMI_ABI::detail
