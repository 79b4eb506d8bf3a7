// SPDX-License-Identifier: MIT
/// The product of 16-bit or 8-bit matrices by `wgmma`, with sums in float.
#pragma once

#include <demi/cuda/detail/gemm_instructions.cuh>
#include <demi/cuda/detail/gemm_lines.cuh>
#include <demi/cuda/detail/gemm_narrow_lines.cuh>
#include <demi/cuda/detail/gemm_product.cuh>
#include <demi/cuda/detail/slice_ring.cuh>
#include <demi/cuda/detail/wgmma_instructions.cuh>
#include <demi/cuda/gemm_tile.hpp>

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// `Tile`: a `wgmma_tile`. A block computes one part after the other; while its warps finish the
/// sums of one, the slices of the next are on their way.
///
/// Tensor cores of compute capability 9.0 keep about 14 bits of sums of 8-bit products, so these
/// are added to sums in float after each slice: the error is some 2^-13 of what 128 products add up
/// to, and does not grow with the depth.
template <class Tile, class Product>
struct wgmma_pass {
    static constexpr int threads = Tile::threads;

    CUtensorMap map_a;
    CUtensorMap map_b;
    Product product;
    unsigned tiles;
    unsigned parts;  ///< tiles x parts of the depth x products

    __device__ void run() const {
        if constexpr (has_wgmma) {
            // The host knows from this, in static shared memory, that there is code here.
            __shared__ std::uint64_t barriers[slice_ring<Tile>::barriers];
            extern __shared__ __align__(128) unsigned char shared[];
            const std::uint32_t begin = shared_address(shared);
            const std::uint32_t skipped = (1024 - begin % 1024) % 1024;
            const slice_ring<Tile> ring{begin + skipped, shared_address(barriers)};
            if (threadIdx.x == 0) ring.init();
            __syncthreads();
            if (threadIdx.x >= Tile::consumers) {
                give_up_registers<40>();
                if (threadIdx.x == Tile::consumers) fill(ring);
            } else {
                take_registers<232>();
                multiply(ring, reinterpret_cast<float*>(shared + skipped +
                                                        Tile::stages * Tile::stage_bytes));
            }
        } else {
            __trap();
        }
    }

private:
    using left = typename Product::left;
    using right = typename Product::right;
    static constexpr int depth = Tile::depth_bytes / static_cast<int>(sizeof(left));
    static constexpr int steps = 4;  ///< of 32 bytes
    static constexpr int columns = Tile::group_columns;
    static constexpr bool has_short_sums = sizeof(left) == 1;
    static_assert(!has_short_sums || columns <= 128, "there are registers for two sums of each");
    using group_sums = float[columns / 8][4];

    template <class Work>
    __device__ void for_each_part(const Work& work) const {
        for (unsigned i = blockIdx.x; i < parts; i += gridDim.x) {
            const unsigned rest = i / tiles;
            const uint3 place{i % tiles, rest % product.split.parts, rest / product.split.parts};
            const block_part part = part_at<Tile::rows, Tile::columns>(product, place);
            work(part, static_cast<int>((part.depth_end - part.depth_begin + depth - 1) / depth));
        }
    }

    /// `Across`: rows or columns of the tile.
    template <int Across>
    static __device__ void copy_operand(std::uint32_t to, const CUtensorMap& map,
                                        std::uint32_t barrier, bool along_depth, int across,
                                        int depth_begin, int matrix) {
        if (has_short_sums || along_depth) {
            copy_box(to, map, barrier, depth_begin, across, matrix);
        } else {
#pragma unroll
            for (int i = 0; i < Across; i += 64) {
                copy_box(to + i * Tile::depth_bytes, map, barrier, across + i, depth_begin, matrix);
            }
        }
    }

    __device__ void fill(slice_ring<Tile> ring) const {
        prefetch_map(map_a);
        prefetch_map(map_b);
        for_each_part([&](const block_part& part, int slices) {
            const int row = static_cast<int>(part.row);
            const int column = static_cast<int>(part.column);
            int place = static_cast<int>(part.depth_begin);
            const int matrix_a = product.walk.a == 0 ? 0 : static_cast<int>(part.product);
            const int matrix_b = product.walk.b == 0 ? 0 : static_cast<int>(part.product);
#pragma unroll 1
            for (int i = 0; i < slices; ++i) {
                ring.begin_to_fill();
                const std::uint32_t barrier = ring.full(ring.stage);
                const std::uint32_t to = ring.slice();
                copy_operand<Tile::rows>(to, map_a, barrier, product.a.along_depth, row, place,
                                         matrix_a);
                copy_operand<Tile::columns>(to + Tile::rows * Tile::depth_bytes, map_b, barrier,
                                            product.b.along_depth, column, place, matrix_b);
                ring.advance();
                place += depth;
            }
        });
    }

    /// The group's first row and column within the tile, the same to all threads of a warp.
    static __device__ int group_place() {
        return __shfl_sync(~0u, static_cast<int>(threadIdx.x) / Tile::group_threads, 0);
    }
    static __device__ int group_row() { return Tile::rows == 128 ? 64 * group_place() : 0; }
    static __device__ int group_column() { return Tile::rows == 128 ? 0 : columns * group_place(); }

    __device__ void multiply(slice_ring<Tile> ring, float* turn) const {
        const int row = group_row();
        const int column = group_column();
        typename Product::worker worker = product.begin_worker();
        for_each_part([&](const block_part& part, int slices) {
            group_sums sums = {};
            if constexpr (has_short_sums) {
                add_short_sums(sums, ring, slices, row, column);
            } else if (product.a.along_depth) {
                product.b.along_depth ? add_products<false, false>(sums, ring, slices, row, column)
                                      : add_products<false, true>(sums, ring, slices, row, column);
            } else {
                product.b.along_depth ? add_products<true, false>(sums, ring, slices, row, column)
                                      : add_products<true, true>(sums, ring, slices, row, column);
            }
            write(sums, turn, part, row, column, worker);
        });
        if (product.split.parts == 1) Product::end_worker(worker);
    }

    /// Starts the multiplications of a slice; `keep` 0: they replace the sums.
    template <bool AcrossA, bool AcrossB>
    static __device__ void multiply_slice(group_sums& sums, std::uint32_t slice, int row,
                                          int column, int keep) {
        // A piece of 128 bytes is a line along the depth, or 64 columns of one depth.
        const std::uint64_t a = operand_place<AcrossA>(slice + row * 128, depth);
        const std::uint64_t b = operand_place<AcrossB>(slice + (Tile::rows + column) * 128, depth);
        hold(sums);
        open_multiplications();
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            constexpr int step_a = (AcrossA ? 16 * 128 : 32) / 16;
            constexpr int step_b = (AcrossB ? 16 * 128 : 32) / 16;
            multiply_async<left, right, AcrossA, AcrossB>(sums, a + step * step_a,
                                                          b + step * step_b, step > 0 || keep);
        }
        close_multiplications();
    }

    /// The multiplications of one slice are running while those of the next are started.
    template <bool AcrossA, bool AcrossB>
    static __device__ void add_products(group_sums& sums, slice_ring<Tile>& ring, int slices,
                                        int row, int column) {
        unsigned former = 0;
#pragma unroll 1
        for (int i = 0; i < slices; ++i) {
            ring.wait_until_full();
            multiply_slice<AcrossA, AcrossB>(sums, ring.slice(), row, column, 1);
            wait_for_multiplications<1>();
            if (i > 0) ring.leave(former);
            former = ring.stage;
            ring.advance();
        }
        wait_for_multiplications<0>();
        hold(sums);
        ring.leave(former);
    }

    /// While one group adds up, the other one multiplies.
    static __device__ void add_short_sums(group_sums& sums, slice_ring<Tile>& ring, int slices,
                                          int row, int column) {
        group_sums of_slice = {};
#pragma unroll 1
        for (int i = 0; i < slices; ++i) {
            ring.wait_until_full();
            multiply_slice<false, false>(of_slice, ring.slice(), row, column, 0);
            wait_for_multiplications<0>();
            hold(of_slice);
            ring.leave(ring.stage);
            ring.advance();
#pragma unroll
            for (int j = 0; j < columns / 8; ++j) {
#pragma unroll
                for (int k = 0; k < 4; ++k) sums[j][k] += of_slice[j][k];
            }
        }
    }

    /// Calls `work` with `first` as a constant: sums are in registers, which have no address. One
    /// copy of the code around it is for all columns.
    template <int Width, class Work>
    static __device__ void with_columns(int first, const Work& work) {
#pragma unroll
        for (int i = 0; i < columns; i += Width) {
            if (i == first) work(i);
        }
    }

    __device__ void write(const group_sums& sums, float* turn, const block_part& part, int row,
                          int column, typename Product::worker& worker) const {
        using wide_writer = line_writer<Tile::turn_columns, Product>;
        using narrow_writer = narrow_line_writer<Product>;
        const int warp = static_cast<int>(threadIdx.x) / 32;
        auto* const to = product.result_of(part.product);
        float* const warp_turn = turn + warp * 16 * wide_writer::row_length;
        const wide_writer lines{product, part, to, warp_turn, worker};
        const narrow_writer narrow{product, to, reinterpret_cast<std::uint32_t*>(warp_turn)};
        const std::size_t first_row = part.row + row + warp % 4 * 16;
        if (first_row >= product.rows) return;
#pragma unroll 1
        for (int i = 0; i < columns; i += narrow_writer::columns) {
            const std::size_t first_column = part.column + column + i;
            if (first_column >= product.columns) break;
            if constexpr (narrow_writer::can_round) {
                if (narrow.serves(part)) {
                    with_columns<narrow_writer::columns>(i,
                                                         [&](int j) { narrow.put(&sums[j / 8]); });
                    narrow.write(first_row, first_column);
                    continue;
                }
            }
            write_lines(lines, sums, i, first_row, first_column);
        }
    }

    template <class Writer>
    __device__ void write_lines(const Writer& lines, const group_sums& sums, int first,
                                std::size_t row, std::size_t column) const {
#pragma unroll 1
        for (int i = 0; i < narrow_line_writer<Product>::columns; i += Tile::turn_columns) {
            if (column + i >= product.columns) break;
            with_columns<Tile::turn_columns>(first + i, [&](int j) {
#pragma unroll
                for (int k = 0; k < Tile::turn_columns; k += 8) lines.put(k, sums[(j + k) / 8]);
            });
            lines.write(row, column + i);
        }
    }
};

/// The registers of a multiprocessor are one block's: that they can change hands asks for the 1.
template <class Pass>
__global__ void __launch_bounds__(Pass::threads, 1)
    wgmma_kernel(const __grid_constant__ Pass pass) {
    pass.run();
}

}  // namespace demi::inline DEMI_ABI::detail
