// SPDX-License-Identifier: MIT
/// The product of matrices of any formats by ordinary multiplications.
#pragma once

#include <demi/cuda/detail/gemm_product.cuh>
#include <demi/cuda/detail/gemm_stores.cuh>

#include <cstddef>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

template <class T>
struct alignas(16) four_values {
    T values[4];
};

/// Every thread computes `Blocks` x `Blocks` blocks of 4 x 4 values that are 64 apart.
template <int Blocks, class Product>
struct simt_pass {
    static constexpr int threads = 256;
    static constexpr int resident = 2;        ///< blocks at a time: half of the registers for each
    static constexpr int size = 64 * Blocks;  ///< rows and columns of a tile
    static constexpr int depth = 16 / Blocks;

    Product product;

    __device__ void run() const {
        const block_part part = part_of_block<size, size>(product);
        sum sums[4 * Blocks][4 * Blocks] = {};
        add_products(sums, part);
        write(sums, part);
    }

private:
    using sum = typename Product::sum;
    /// Threads that read a line along the depth take 8 values of each of 4 lines: with this
    /// distance they write to 32 banks.
    using slice = sum[depth][size + 4];
    static constexpr int values_per_thread = size * depth / threads;
    static_assert(values_per_thread == 4);

    /// One thread's part of a slice of an operand on its way to shared memory.
    template <class T>
    struct carried {
        const T* data;
        std::size_t leading;
        std::size_t across_left;
        bool along_depth;
        T values[values_per_thread];

        __device__ carried(const T* matrix, const gemm_operand<T>& operand, std::size_t across,
                           std::size_t extent)
            : data(matrix + across * (operand.along_depth ? operand.leading : 1)),
              leading(operand.leading),
              across_left(extent - across),
              along_depth(operand.along_depth) {}

        __device__ int across_of(int i) const {
            const int place = static_cast<int>(threadIdx.x) + i * threads;
            return along_depth ? place / 8 % size : place % size;
        }
        __device__ int depth_of(int i) const {
            const int place = static_cast<int>(threadIdx.x) + i * threads;
            return along_depth ? place % 8 + place / (8 * size) * 8 : place / size;
        }

        __device__ void read(std::size_t first, std::size_t left) {
#pragma unroll
            for (int i = 0; i < values_per_thread; ++i) {
                const auto x = static_cast<std::size_t>(across_of(i));
                const auto d = static_cast<std::size_t>(depth_of(i));
                values[i] = T{};
                if (x < across_left && d < left) {
                    values[i] = along_depth ? data[x * leading + first + d]
                                            : data[(first + d) * leading + x];
                }
            }
        }

        __device__ void put(slice& to) const {
#pragma unroll
            for (int i = 0; i < values_per_thread; ++i) {
                to[depth_of(i)][across_of(i)] = device_convert<sum>(values[i]);
            }
        }
    };

    static __device__ int row_of(int i) {
        return static_cast<int>(threadIdx.x) / 16 * 4 + i / 4 * 64 + i % 4;
    }
    static __device__ int column_of(int i) {
        return static_cast<int>(threadIdx.x) % 16 * 4 + i / 4 * 64 + i % 4;
    }

    static __device__ void multiply(sum (&sums)[4 * Blocks][4 * Blocks], const slice& a,
                                    const slice& b) {
#pragma unroll
        for (int d = 0; d < depth; ++d) {
            four_values<sum> left[Blocks];
            four_values<sum> right[Blocks];
#pragma unroll
            for (int i = 0; i < Blocks; ++i) {
                left[i] = *reinterpret_cast<const four_values<sum>*>(&a[d][row_of(4 * i)]);
                right[i] = *reinterpret_cast<const four_values<sum>*>(&b[d][column_of(4 * i)]);
            }
#pragma unroll
            for (int i = 0; i < 4 * Blocks; ++i) {
#pragma unroll
                for (int j = 0; j < 4 * Blocks; ++j) {
                    sums[i][j] += left[i / 4].values[i % 4] * right[j / 4].values[j % 4];
                }
            }
        }
    }

    __device__ void add_products(sum (&sums)[4 * Blocks][4 * Blocks],
                                 const block_part& part) const {
        __shared__ alignas(16) slice slices_a[2];
        __shared__ alignas(16) slice slices_b[2];
        carried<typename Product::left> a(product.left_of(part.product), product.a, part.row,
                                          product.rows);
        carried<typename Product::right> b(product.right_of(part.product), product.b, part.column,
                                           product.columns);
        const auto read = [&](std::size_t first) {
            const std::size_t left = first < part.depth_end ? part.depth_end - first : 0;
            a.read(first, left);
            b.read(first, left);
        };
        read(part.depth_begin);
        int current = 0;
#pragma unroll 1
        for (std::size_t first = part.depth_begin; first < part.depth_end; first += depth) {
            a.put(slices_a[current]);
            b.put(slices_b[current]);
            __syncthreads();
            read(first + depth);
            multiply(sums, slices_a[current], slices_b[current]);
            current ^= 1;
        }
    }

    __device__ void write(sum (&sums)[4 * Blocks][4 * Blocks], const block_part& part) const {
        auto* const to = product.result_of(part.product);
        typename Product::worker worker = product.begin_worker();
        // One copy of the code for all rows: the sums move up to the first one.
#pragma unroll 1
        for (int i = 0; i < 4 * Blocks; ++i) {
            const std::size_t row = part.row + row_of(i);
            if (row < product.rows) {
#pragma unroll
                for (int j = 0; j < 4 * Blocks; j += 4) {
                    write_four(&sums[0][j], row, part.column + column_of(j), to, part, worker);
                }
            }
#pragma unroll
            for (int k = 0; k + 1 < 4 * Blocks; ++k) {
#pragma unroll
                for (int j = 0; j < 4 * Blocks; ++j) sums[k][j] = sums[k + 1][j];
            }
        }
        if (part.partials == nullptr) Product::end_worker(worker);
    }

    __device__ void write_four(const sum* sums, std::size_t row, std::size_t column,
                               typename Product::result* to, const block_part& part,
                               typename Product::worker& worker) const {
        using result = typename Product::result;
        value_group<result, 4> four;
        const bool whole = product.has_wide_lines && column + 4 <= product.columns;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (column + i >= product.columns) continue;
            if (part.partials != nullptr) {
                part.partials[row * product.columns + column + i] = static_cast<float>(sums[i]);
                continue;
            }
            four.values[i] =
                narrowed<result>(product.finished(sums[i], row, column + i, to, worker));
            if (!whole) to[row * product.c_leading + column + i] = four.values[i];
        }
        if (whole && part.partials == nullptr) {
            store_together(to + row * product.c_leading + column, four);
        }
    }
};

}  // namespace demi::inline DEMI_ABI::detail
