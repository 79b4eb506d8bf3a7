// SPDX-License-Identifier: MIT
/// The product of matrices on tensor cores.
#pragma once

#include <demi/cuda/detail/gemm_arithmetic.cuh>
#include <demi/cuda/detail/gemm_instructions.cuh>
#include <demi/cuda/detail/gemm_lines.cuh>
#include <demi/cuda/detail/gemm_product.cuh>
#include <demi/cuda/detail/gemm_shared_tile.cuh>
#include <demi/cuda/gemm_tile.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

/// `Tile`: an `mma_tile`. `Wide`: 16 bytes can be read at once from every line of both operands.
/// `AlongDepthA`, `AlongDepthB`: how the operands lie.
template <class Tile, bool Wide, bool AlongDepthA, bool AlongDepthB, class Product>
struct mma_pass {
    static constexpr int threads = Tile::threads;
    static constexpr int resident = threads < 256 ? 256 / threads : 1;  ///< blocks at a time

    Product product;
    int access_a;  ///< bytes that can be read at once from every line
    int access_b;

    __device__ void run() const {
        if constexpr (code_capability >= arithmetic::compute_capability) {
            extern __shared__ __align__(128) unsigned char shared[];
            const block_part part = part_of_block<Tile::rows, Tile::columns>(product);
            warp_sums all = {};
            add_products(all, shared_address(shared), part);
            wait_for_copies<0>();
            __syncthreads();
            write(all, reinterpret_cast<float*>(shared), part);
        } else {
            __trap();
        }
    }

private:
    static constexpr int row_tiles = Tile::warp_rows / 16;
    static constexpr int column_tiles = Tile::warp_columns / 8;
    static constexpr int steps = Tile::depth / 16;
    using arithmetic = arithmetic_of<Product>;
    static constexpr int value_bytes = sizeof(typename Product::left);
    static constexpr int depth_of_slice = Tile::depth * 2 / value_bytes;
    using tile_a = shared_tile<AlongDepthA, Tile::rows, depth_of_slice, value_bytes>;
    using tile_b = shared_tile<AlongDepthB, Tile::columns, depth_of_slice, value_bytes>;
    static_assert(tile_a::bytes + tile_b::bytes == Tile::stage_bytes && steps % 2 == 0);

    struct warp_sums {
        typename arithmetic::sums of[row_tiles][column_tiles];

        __device__ void add(const warp_sums& other) {
#pragma unroll
            for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
                for (int j = 0; j < column_tiles; ++j) of[i][j].add(other.of[i][j]);
            }
        }
    };

    static __device__ int warp_row() {
        return static_cast<int>(threadIdx.x) / 32 % Tile::row_warps * Tile::warp_rows;
    }
    static __device__ int warp_column() {
        return static_cast<int>(threadIdx.x) / 32 / Tile::row_warps * Tile::warp_columns;
    }

    template <class SharedTile, bool AlongDepth, class T>
    static __device__ auto source_of(const T* data, const gemm_operand<T>& operand,
                                     const block_part& part, std::size_t across, std::size_t extent,
                                     int access) {
        const T* const first = AlongDepth ? data + across * operand.leading + part.depth_begin
                                          : data + part.depth_begin * operand.leading + across;
        return slice_source<SharedTile, AlongDepth, Wide, threads>(
            reinterpret_cast<const value_bits<value_bytes>*>(first), operand.leading,
            extent - across, access);
    }

    /// What a warp multiplies in one step of 32 bytes of the depth.
    struct fragments {
        std::uint32_t a[row_tiles][4];
        std::uint32_t b[column_tiles / 2][4];

        __device__ void load(std::uint32_t stage, int lane_a, int lane_b, int step) {
#pragma unroll
            for (int i = 0; i < row_tiles; ++i) {
                tile_a::template load<false>(a[i], stage, lane_a, i, step);
            }
#pragma unroll
            for (int i = 0; i < column_tiles / 2; ++i) {
                tile_b::template load<true>(b[i], stage + tile_a::bytes, lane_b, i, step);
            }
        }

        __device__ void multiply(warp_sums& sums) {
#pragma unroll
            for (int i = 0; i < row_tiles; ++i) {
                make_factors(a[i]);
#pragma unroll
                for (int j = 0; j < column_tiles; ++j) {
                    // To and fro, so that one operand of neighbours is the same.
                    const int column = i % 2 == 0 ? j : column_tiles - 1 - j;
                    std::uint32_t(&pair)[4] = b[column / 2];
                    if (i == 0 && column % 2 == 0) make_factors(pair);
                    arithmetic::multiply_add(sums.of[i][column], a[i], pair[column % 2 * 2],
                                             pair[column % 2 * 2 + 1]);
                }
            }
        }

    private:
        static __device__ void make_factors(std::uint32_t (&words)[4]) {
#pragma unroll
            for (int i = 0; i < 4; ++i) words[i] = arithmetic::factor(words[i]);
        }
    };

    /// Copies run `stages` - 1 slices ahead of the multiplications, and the reads from shared
    /// memory one step.
    __device__ void add_products(warp_sums& sums, std::uint32_t shared,
                                 const block_part& part) const {
        auto source_a = source_of<tile_a, AlongDepthA>(product.left_of(part.product), product.a,
                                                       part, part.row, product.rows, access_a);
        auto source_b =
            source_of<tile_b, AlongDepthB>(product.right_of(part.product), product.b, part,
                                           part.column, product.columns, access_b);
        const std::size_t depth = part.depth_end - part.depth_begin;
        const auto slices = static_cast<unsigned>((depth + depth_of_slice - 1) / depth_of_slice);
        const int last_depth = static_cast<int>(depth - (slices - std::size_t{1}) * depth_of_slice);
        unsigned left = slices;
        const auto copy_next = [&](std::uint32_t stage) {
            if (left > 0) {
                const int slice_depth = left == 1 ? last_depth : depth_of_slice;
                source_a.copy(stage, slice_depth);
                source_b.copy(stage + tile_a::bytes, slice_depth);
                --left;
            }
            close_copy_group();
        };
        const std::uint32_t end = shared + Tile::stages * Tile::stage_bytes;
        const auto after = [&](std::uint32_t stage) {
            const std::uint32_t next = stage + Tile::stage_bytes;
            return next == end ? shared : next;
        };

        for (int i = 0; i < Tile::stages - 1; ++i) copy_next(shared + i * Tile::stage_bytes);
        std::uint32_t reading = shared;
        std::uint32_t writing = end - Tile::stage_bytes;
        const int lane_a = tile_a::template lane_offset<false>(warp_row());
        const int lane_b = tile_b::template lane_offset<true>(warp_column());

        fragments held[2];
        wait_for_copies<Tile::stages - 2>();
        __syncthreads();
        held[0].load(reading, lane_a, lane_b, 0);
#pragma unroll 1
        for (unsigned slice = 0; slice < slices; ++slice) {
            [[maybe_unused]] warp_sums of_slice = {};
#pragma unroll
            for (int step = 0; step < steps; ++step) {
                if (step == steps - 1) {
                    wait_for_copies<Tile::stages - 2>();
                    __syncthreads();
                    reading = after(reading);
                }
                held[(step + 1) % 2].load(reading, lane_a, lane_b, (step + 1) % steps);
                if (step == 0) {
                    copy_next(writing);
                    writing = after(writing);
                }
                if constexpr (arithmetic::sums_slices) {
                    held[step % 2].multiply(of_slice);
                } else {
                    held[step % 2].multiply(sums);
                }
            }
            if constexpr (arithmetic::sums_slices) sums.add(of_slice);
        }
    }

    __device__ void write(warp_sums& sums, float* shared, const block_part& part) const {
        using writer = line_writer<Tile::warp_columns, Product>;
        const int warp = static_cast<int>(threadIdx.x) / 32;
        typename Product::worker worker = product.begin_worker();
        const writer lines{product, part, product.result_of(part.product),
                           shared + warp * 16 * writer::row_length, worker};
        const std::size_t row = part.row + warp_row();
        const std::size_t column = part.column + warp_column();
        // One copy of the code for all rows: the sums move up to the first ones.
#pragma unroll 1
        for (int i = 0; i < row_tiles; ++i) {
            if (row + 16 * i >= product.rows || column >= product.columns) break;
#pragma unroll
            for (int j = 0; j < column_tiles; ++j) lines.put(8 * j, sums.of[0][j].widened().values);
            lines.write(row + 16 * i, column);
#pragma unroll
            for (int k = 0; k + 1 < row_tiles; ++k) {
#pragma unroll
                for (int j = 0; j < column_tiles; ++j) sums.of[k][j] = sums.of[k + 1][j];
            }
        }
        if (part.partials == nullptr) Product::end_worker(worker);
    }
};

}  // namespace demi::inline DEMI_ABI::detail
