// SPDX-License-Identifier: MIT
/// A matrix product, or a batch of them, as kernels see it: the lines of the result are its rows.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/core/detail/epilogue_worker.hpp>
#include <demi/core/matrix_view.hpp>
#include <demi/cuda/convert.cuh>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

/// The number type of the sums of a product.
template <class... T>
using sum_of = std::conditional_t<(std::same_as<T, double> || ...), double, float>;

/// `device_convert` of a sum, with less code for a NaN.
template <class To, class Sum>
__device__ To narrowed(Sum value) {
    if constexpr (std::same_as<Sum, float> && (is_binary16<To> || is_brain16<To>)) {
        using format = format_traits<To>;
        constexpr int dropped = 23 - format::mantissa_bits;
        const std::uint32_t bits = to_bits(value);
        const std::uint32_t nan = (bits >> 16 & format::sign_mask) | format::quiet_nan_bits |
                                  (bits >> dropped & format::mantissa_mask);
        std::uint16_t number;
        if constexpr (is_binary16<To>) {
            number = float16_bits_of(value, nearest_even{});
        } else {
            number = bfloat16_bits_of(bits, nearest_even{});
        }
        return from_bits<To>(is_nan(value) ? static_cast<std::uint16_t>(nan) : number);
    } else {
        return device_convert<To>(value);
    }
}

/// What a product may do with its values.
enum class product_math : std::uint8_t {
    usual,         ///< multiplies them as they are; sums in float, or in double when a matrix is
    tf32_factors,  ///< rounds factors in float to TF32
    half_sums,     ///< keeps sums of products of float16 values in float16
};

/// One factor of a product.
template <class T>
struct gemm_operand {
    const T* data;
    std::size_t leading;
    bool along_depth;  ///< lines run along the inner dimension, else across it
};

/// Where the matrices of one product of a batch are.
struct batch_places {
    const void* a;
    const void* b;
    void* c;
};

/// A pointer from a list in memory, which the compiler cannot know to be to global memory.
template <class T>
__device__ T* listed_pointer(const void* place) {
    __builtin_assume(__isGlobal(place));
    return static_cast<T*>(const_cast<void*>(place));
}

/// How to find the matrices of a batch: at equal distances in elements, or in a list.
struct batch_walk {
    std::ptrdiff_t a = 0;
    std::ptrdiff_t b = 0;
    std::ptrdiff_t c = 0;
    const batch_places* places = nullptr;
};

/// How the inner dimension is divided among blocks.
struct depth_split {
    unsigned parts = 1;
    std::size_t part_depth = 0;  ///< of all but the last
    float* partials = nullptr;   ///< a dense matrix for each part of each product, when there are 2
};

/// `c = epilogue(alpha a b + beta c)` for `count` products of one shape. A column-major result is
/// written as the transpose of a row-major one.
template <class A, class B, class C, class Epilogue, product_math Math = product_math::usual>
struct gemm_product {
    using left = A;
    using right = B;
    using result = C;
    using sum = sum_of<A, B, C>;
    static constexpr product_math math = Math;
    using worker = epilogue_worker<Epilogue>;  ///< the epilogue itself when it has none
    static constexpr bool has_worker = begun_epilogue<Epilogue>;

    std::size_t rows;
    std::size_t columns;
    std::size_t depth;
    gemm_operand<A> a;
    gemm_operand<B> b;
    C* c;
    std::size_t c_leading;
    bool is_transposed;
    bool has_wide_lines;  ///< 16 bytes of a line of `c` can be stored at once, or 8 values
    float alpha;
    float beta;
    Epilogue epilogue;
    unsigned count = 1;
    batch_walk walk{};
    depth_split split{};

    __device__ const A* left_of(unsigned i) const {
        if (walk.places != nullptr) return listed_pointer<const A>(walk.places[i].a);
        return a.data + static_cast<std::ptrdiff_t>(i) * walk.a;
    }
    __device__ const B* right_of(unsigned i) const {
        if (walk.places != nullptr) return listed_pointer<const B>(walk.places[i].b);
        return b.data + static_cast<std::ptrdiff_t>(i) * walk.b;
    }
    __device__ C* result_of(unsigned i) const {
        if (walk.places != nullptr) return listed_pointer<C>(walk.places[i].c);
        return c + static_cast<std::ptrdiff_t>(i) * walk.c;
    }

    /// Whether a finished value is the sum times `alpha`, wherever it stands.
    __device__ bool only_scales() const { return std::same_as<Epilogue, no_epilogue> && beta == 0; }

    __device__ worker begin_worker() const { return begin_epilogue(epilogue); }

    /// By all threads of a warp that may have finished values.
    static __device__ void end_worker(worker& of_thread) { end_epilogue<Epilogue>(of_thread); }

    /// What a sum becomes before it is rounded. `to`: the result of its product.
    __device__ sum finished(sum value, std::size_t row, std::size_t column, const C* to,
                            worker& of_thread) const {
        value *= static_cast<sum>(alpha);
        if (beta != 0) {
            value += static_cast<sum>(beta) * device_convert<sum>(to[row * c_leading + column]);
        }
        const matrix_position at =
            is_transposed ? matrix_position{column, row} : matrix_position{row, column};
        if constexpr (std::is_invocable_r_v<sum, worker&, sum, matrix_position>) {
            return of_thread(value, at);
        } else {
            return of_thread(static_cast<float>(value), at);
        }
    }

    __device__ void finish(sum value, std::size_t row, std::size_t column, C* to,
                           worker& of_thread) const {
        to[row * c_leading + column] = narrowed<C>(finished(value, row, column, to, of_thread));
    }
};

/// The part of a product that one block computes.
struct block_part {
    unsigned product;
    std::size_t row;
    std::size_t column;
    std::size_t depth_begin;
    std::size_t depth_end;
    float* partials;  ///< where its sums go when the depth is split
};

/// How many tiles of a column are computed one after the other, to find their operands in the
/// second-level cache.
inline constexpr unsigned tile_group = 8;

/// Tile `place.x`, part `place.y` of the depth, product `place.z`.
template <int Rows, int Columns, class Product>
__device__ block_part part_at(const Product& product, const uint3& place) {
    const auto tile_rows = static_cast<unsigned>((product.rows + Rows - 1) / Rows);
    const auto tile_columns = static_cast<unsigned>((product.columns + Columns - 1) / Columns);
    const unsigned group_tiles = tile_group * tile_columns;
    const unsigned first_row = place.x / group_tiles * tile_group;
    const unsigned group_rows = ::min(tile_group, tile_rows - first_row);
    const unsigned in_group = place.x % group_tiles;

    block_part part;
    part.product = place.z;
    part.row = std::size_t{first_row + in_group % group_rows} * Rows;
    part.column = std::size_t{in_group / group_rows} * Columns;
    part.depth_begin = place.y * product.split.part_depth;
    part.depth_end = product.depth;
    part.partials = nullptr;
    if (product.split.parts > 1) {
        if (place.y + 1 < product.split.parts) {
            part.depth_end = part.depth_begin + product.split.part_depth;
        }
        part.partials =
            product.split.partials +
            (std::size_t{place.z} * product.split.parts + place.y) * product.rows * product.columns;
    }
    return part;
}

template <int Rows, int Columns, class Product>
__device__ block_part part_of_block(const Product& product) {
    return part_at<Rows, Columns>(product, blockIdx);
}

template <class Pass>
__global__ void __launch_bounds__(Pass::threads) gemm_kernel(const __grid_constant__ Pass pass) {
    pass.run();
}

}  // namespace demi::inline DEMI_ABI::detail
