// SPDX-License-Identifier: MIT
/// What the kernels that convert matrices have in common: lines of elements, and what becomes of
/// one.
#pragma once

#include <demi/core/matrix_view.hpp>
#include <demi/cuda/convert.cuh>
#include <demi/cuda/detail/pass_operand.cuh>
#include <demi/precision/random_bits.hpp>

#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// Contiguous elements, again and again: the rows of a matrix, or its columns.
template <class T>
struct matrix_lines {
    T* first = nullptr;
    std::uint64_t pitch = 0;

    __host__ __device__ T* at(std::uint64_t line, std::uint64_t position) const {
        return first + line * pitch + position;
    }

    /// Whether every line stands at a multiple of so many bytes.
    bool stands_at(std::size_t bytes) const {
        return reinterpret_cast<std::uintptr_t>(first) % bytes == 0 &&
               pitch * sizeof(T) % bytes == 0;
    }
};

template <class T>
matrix_lines<T> lines_of(const matrix_view<T>& matrix) {
    return {matrix.data(), matrix.leading_dimension()};
}

template <std::size_t Bytes>
struct machine_word;
template <>
struct machine_word<1> {
    using type = std::uint8_t;
};
template <>
struct machine_word<2> {
    using type = std::uint16_t;
};
template <>
struct machine_word<4> {
    using type = std::uint32_t;
};
template <>
struct machine_word<8> {
    using type = uint2;
};
template <>
struct machine_word<16> {
    using type = uint4;
};

/// Loads a group in one access; the compiler makes several of some structs.
template <class Group>
__device__ Group load_group(const void* memory) {
    using word = typename machine_word<sizeof(Group)>::type;
    return __builtin_bit_cast(Group, *static_cast<const word*>(memory));
}

template <class Group>
__device__ void store_group(void* memory, const Group& group) {
    using word = typename machine_word<sizeof(Group)>::type;
    __stwb(static_cast<word*>(memory), __builtin_bit_cast(word, group));
}

/// Rounds one value to the format of the target. A conversion of a matrix calls `begin` on every
/// thread of a block, then the result for each element, then `end` on that, on every thread.
template <class To, class Rounding>
struct rounded_element {
    Rounding rounding;

    struct worker {
        template <class From>
        __device__ To operator()(const From& value, std::uint64_t) const {
            return device_convert<To>(value, Rounding{});
        }
        __device__ void end() const {}
    };

    __device__ worker begin() const { return {}; }
};

/// At random, by bits that belong to the place of the element.
template <class To>
struct rounded_element<To, stochastic> {
    stochastic rounding;

    struct worker {
        std::uint64_t key;

        template <class From>
        __device__ To operator()(const From& value, std::uint64_t index) const {
            return device_convert<To>(value, stochastic_bits{random_bits(key, index)});
        }
        __device__ void end() const {}
    };

    __device__ worker begin() const { return {random_key(rounding.seed, rounding.step, 0)}; }
};

template <class Pass>
__global__ void __launch_bounds__(pass_threads, 3)
    matrix_kernel(const __grid_constant__ Pass pass) {
    pass.run();
}

}  // namespace demi::inline DEMI_ABI::detail
