// SPDX-License-Identifier: MIT
/// How tensor cores multiply the values of a product: as what, and what their sums are kept in.
#pragma once

#include <demi/cuda/convert.cuh>
#include <demi/cuda/detail/gemm_instructions.cuh>
#include <demi/cuda/detail/gemm_product.cuh>
#include <demi/precision/policy.hpp>

#include <concepts>
#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// 16 x 8 sums, of which a lane holds two of row lane / 4, and two of the row 8 further.
struct float_sums {
    float values[4];

    __device__ void add(const float_sums& other) {
#pragma unroll
        for (int i = 0; i < 4; ++i) values[i] += other.values[i];
    }
    __device__ const float_sums& widened() const { return *this; }
};

struct float16_sums {
    std::uint32_t pairs[2];

    __device__ float_sums widened() const {
        float_sums result;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const auto bits = static_cast<std::uint16_t>(pairs[i / 2] >> i % 2 * 16);
            result.values[i] = device_convert<float>(from_bits<float16>(bits));
        }
        return result;
    }
};

/// What all arithmetics have unless they say otherwise.
struct common_arithmetic {
    static constexpr bool exists = true;
    /// The least that has it.
    static constexpr int compute_capability = 80;
    /// Whether operands may lie across the depth, too.
    static constexpr bool takes_any_layout = true;
    /// Whether an instruction drops more of a sum than its type does, so that a slice is summed on
    /// its own before its sums are added to the others.
    static constexpr bool sums_slices = false;

    using sums = float_sums;

    /// What the instruction takes for values as they are in memory.
    static __device__ std::uint32_t factor(std::uint32_t word) { return word; }
};

/// `tile_format`: the format by which `gemm_tile` chooses tiles.
template <class Left, class Right, product_math Math>
struct tensor_arithmetic {
    static constexpr bool exists = false;
    static constexpr bool takes_any_layout = false;
};

template <>
struct tensor_arithmetic<float16, float16, product_math::usual> : common_arithmetic {
    using tile_format = float16;

    static __device__ void multiply_add(sums& to, const std::uint32_t (&a)[4], std::uint32_t b0,
                                        std::uint32_t b1) {
        multiply_add_float16(to.values, a, b0, b1);
    }
};

template <>
struct tensor_arithmetic<bfloat16, bfloat16, product_math::usual> : common_arithmetic {
    using tile_format = bfloat16;

    static __device__ void multiply_add(sums& to, const std::uint32_t (&a)[4], std::uint32_t b0,
                                        std::uint32_t b1) {
        multiply_add_bfloat16(to.values, a, b0, b1);
    }
};

template <>
struct tensor_arithmetic<float16, float16, product_math::half_sums> : common_arithmetic {
    using tile_format = float16;
    using sums = float16_sums;

    static __device__ void multiply_add(sums& to, const std::uint32_t (&a)[4], std::uint32_t b0,
                                        std::uint32_t b1) {
        multiply_add_in_float16(to.pairs, a, b0, b1);
    }
};

template <>
struct tensor_arithmetic<float, float, product_math::tf32_factors> : common_arithmetic {
    using tile_format = tf32;

    /// Rounds to nearest, ties away from zero. Only a NaN could become something else by the sum.
    static __device__ std::uint32_t factor(std::uint32_t word) {
        const bool is_number = __uint_as_float(word) == __uint_as_float(word);
        return is_number ? (word + 0x1000u) & 0xffffe000u : 0x7fffe000u;
    }
    static __device__ void multiply_add(sums& to, const std::uint32_t (&a)[4], std::uint32_t b0,
                                        std::uint32_t b1) {
        multiply_add_tf32(to.values, a, b0, b1);
    }
};

/// The tensor cores keep about 14 bits of a sum.
template <class Left, class Right>
    requires((std::same_as<Left, float8_e4m3> ||
              std::same_as<Left, float8_e5m2>)&&(std::same_as<Right, float8_e4m3> ||
                                                 std::same_as<Right, float8_e5m2>))
struct tensor_arithmetic<Left, Right, product_math::usual> : common_arithmetic {
    static constexpr int compute_capability = 89;
    static constexpr bool takes_any_layout = false;
    static constexpr bool sums_slices = true;
    using tile_format = Left;

    static __device__ void multiply_add(sums& to, const std::uint32_t (&a)[4], std::uint32_t b0,
                                        std::uint32_t b1) {
        multiply_add_float8<std::same_as<Left, float8_e5m2>, std::same_as<Right, float8_e5m2>>(
            to.values, a, b0, b1);
    }
};

/// For a `gemm_product`.
template <class Product>
using arithmetic_of =
    tensor_arithmetic<typename Product::left, typename Product::right, Product::math>;

/// Whether there are tensor cores for a product; those of a device may be too old.
template <class Product>
inline constexpr bool multiplies_on_tensor_cores =
    arithmetic_of<Product>::exists&& std::same_as<typename Product::sum, float>;

}  // namespace demi::inline DEMI_ABI::detail
