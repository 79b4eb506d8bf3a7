// SPDX-License-Identifier: MIT
/// The element-wise pass of the CUDA backend: one launch for any number of tensors.
#pragma once

#include <demi/cuda/detail/chunk_walk.cuh>
#include <demi/cuda/detail/pass_operand.cuh>
#include <demi/cuda/detail/tensor_table.hpp>
#include <demi/cuda/launch.cuh>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

/// A functor as it is, or what its `load` gives; one thread calls it for its block, for it may read
/// memory and compute in double precision.
template <class Value>
__device__ auto loaded_by_block(const Value& value) {
    if constexpr (requires { value.load(); }) {
        using result = decltype(value.load());
        static_assert(std::is_trivially_copyable_v<result>);
        __shared__ alignas(result) unsigned char memory[sizeof(result)];
        if (threadIdx.x == 0) *reinterpret_cast<result*>(memory) = value.load();
        __syncthreads();
        return *reinterpret_cast<const result*>(memory);
    } else {
        return value;
    }
}

template <class Functor>
inline constexpr bool only_copies = requires {
    requires Functor::copies;
};

/// Two, or four of operands so few that two keep little memory under way and few registers busy.
template <class... Operands>
inline constexpr std::size_t transform_groups_in_flight = sizeof...(Operands) <= 2 ? 4 : 2;

template <class Functor, class... Operands>
struct transform_pass {
    tensor_table<sizeof...(Operands)> table;
    Functor functor;
    pass_roundings<Operands...> roundings;

    __device__ void run() const {
        const auto function = loaded_by_block(functor);
        if constexpr (requires { function.skip(); }) {
            if (function.skip()) return;
        }
        walk_chunks<transform_groups_in_flight<Operands...>, Operands...>(
            table, 1,
            [&](auto& groups, const auto& tensor) {
                const auto rounding = roundings.of_tensor(tensor.tensor);
                groups.each([&](auto& held, std::uint64_t index) {
                    apply(function, held, tensor.data, index, rounding);
                });
            },
            [&](auto& held, const auto& tensor, std::uint64_t index) {
                apply(function, held, tensor.data, index, roundings.of_tensor(tensor.tensor));
            });
    }

private:
    template <class Function, class Held, class Roundings>
    __device__ static void apply(const Function& function, Held& held, void* const* data,
                                 std::uint64_t index, const Roundings& rounding) {
        if constexpr (only_copies<Functor>) {
            copy_first_to_second(held, index, rounding);
        } else {
            held.widen_all();
            held.call_each(function);
            held.narrow_all(index, rounding);
        }
        held.write(data, index);
    }
};

template <class Pass>
__global__ void __launch_bounds__(pass_threads)
    transform_kernel(const __grid_constant__ Pass pass) {
    pass.run();
}

/// See requirement 5 of `backend`. One launch; no synchronisation.
template <class Functor, class... Operands>
void cuda_transform(cuda_context& context, const Functor& functor, const Operands&... operands) {
    using pass_type = transform_pass<Functor, Operands...>;
    static_assert(std::is_trivially_copyable_v<Functor>, "a functor travels as bytes");
    constexpr std::size_t chunk = pass_chunk<transform_groups_in_flight<Operands...>, Operands...>;
    const pass_type pass{make_tensor_table<sizeof...(Operands)>(context, group_size<Operands...>,
                                                                chunk, operands...),
                         functor,
                         {{operands.rounding}...}};
    if (pass.table.chunks == 0) return;
    const auto kernel = transform_kernel<pass_type>;
    const unsigned blocks =
        resident_blocks(kernel, pass_threads, pass.table.chunks, context.device());
    launch("transform", kernel, {blocks, pass_threads}, context.stream(), pass);
}

}  // namespace demi::inline DEMI_ABI::detail
