// SPDX-License-Identifier: MIT
/// The reduction of the CUDA backend: two launches for any number of tensors, the same bits always.
#pragma once

#include <demi/cuda/detail/chunk_walk.cuh>
#include <demi/cuda/detail/pass_operand.cuh>
#include <demi/cuda/detail/tensor_table.hpp>
#include <demi/cuda/launch.cuh>

#include <cub/block/block_reduce.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

/// Loads only, and few registers: more of them can be under way.
inline constexpr std::size_t reduce_groups_in_flight = 4;
/// Fixed, so that the order of additions is too, on every device.
inline constexpr std::uint64_t most_reduce_blocks = 1024;

template <class Reducer, class... Operands>
using partial_of = typename Reducer::template partial<pass_number<Operands...>>;

/// Where the blocks leave what they found: a partial, and the value where it took an inspection.
template <class Reducer, class... Operands>
struct block_results {
    partial_of<Reducer, Operands...>* partials;
    typename Reducer::value_type* inspected;

    static constexpr std::size_t bytes_per_block =
        sizeof(partial_of<Reducer, Operands...>) + sizeof(typename Reducer::value_type);
};

template <class Reducer, class Value>
__device__ bool wants_inspection(const Reducer& reducer, const Value& value) {
    if constexpr (requires { reducer.wants_inspection(value); }) {
        return reducer.wants_inspection(value);
    } else {
        return false;
    }
}

/// Combines one value of every thread; the result is thread 0's.
template <class T, class Combine>
__device__ T reduce_block(const T& value, const Combine& combine) {
    using block_reduce = cub::BlockReduce<T, pass_threads>;
    __shared__ typename block_reduce::TempStorage memory;
    __syncthreads();
    return block_reduce(memory).Reduce(value, combine);
}

template <class Reducer, class... Operands>
__global__ void __launch_bounds__(pass_threads)
    reduce_chunks_kernel(const __grid_constant__ tensor_table<sizeof...(Operands)> table,
                         const Reducer reducer, const block_results<Reducer, Operands...> results) {
    using partial = partial_of<Reducer, Operands...>;
    using value_type = typename Reducer::value_type;
    partial mine{};
    walk_chunks<reduce_groups_in_flight, Operands...>(
        table, [&](auto& held, const auto&, std::uint64_t) {
            held.widen_all();
            held.call_each([&](auto... values) { reducer.accumulate(mine, values...); });
        });
    const partial all = reduce_block(mine, [&](const partial& left, const partial& right) {
        partial both = left;
        reducer.join(both, right);
        return both;
    });
    __shared__ bool inspect;
    if (threadIdx.x == 0) {
        results.partials[blockIdx.x] = all;
        inspect = wants_inspection(reducer, reducer.finish(all));
    }
    __syncthreads();
    if constexpr (requires(value_type & value) { reducer.wants_inspection(value); }) {
        if (!inspect) return;
        value_type found = reducer.finish(mine);
        if (wants_inspection(reducer, found)) {
            walk_chunks<1, Operands...>(
                table, [&](auto& held, const auto& tensor, std::uint64_t index) {
                    held.widen_all();
                    std::uint64_t at = index;
                    held.call_each([&](auto... values) {
                        reducer.inspect(found, element_position{tensor.tensor, at++}, values...);
                    });
                });
        }
        const value_type joined =
            reduce_block(found, [&](const value_type& left, const value_type& right) {
                return reducer.combine(left, right);
            });
        if (threadIdx.x == 0) results.inspected[blockIdx.x] = joined;
    }
}

template <class Reducer, class... Operands>
__global__ void __launch_bounds__(pass_threads)
    reduce_blocks_kernel(const Reducer reducer, const block_results<Reducer, Operands...> results,
                         const unsigned blocks, typename Reducer::value_type* const result) {
    using value_type = typename Reducer::value_type;
    value_type mine{};
    for (unsigned i = threadIdx.x; i < blocks; i += pass_threads) {
        value_type next = reducer.finish(results.partials[i]);
        if (wants_inspection(reducer, next)) next = results.inspected[i];
        mine = reducer.combine(mine, next);
    }
    const value_type all = reduce_block(mine, [&](const value_type& left, const value_type& right) {
        return reducer.combine(left, right);
    });
    if (threadIdx.x == 0) *result = all;
}

/// See requirement 6 of `backend`. Two launches; no synchronisation.
template <class Reducer, class... Operands>
void cuda_reduce(cuda_context& context, typename Reducer::value_type* result,
                 const Reducer& reducer, const Operands&... operands) {
    using results_type = block_results<Reducer, Operands...>;
    static_assert(std::is_trivially_copyable_v<Reducer>, "a reducer travels as bytes");
    constexpr std::uint64_t room = cuda_context::workspace_size / results_type::bytes_per_block;
    constexpr std::uint64_t most_blocks = std::min(most_reduce_blocks, room);
    static_assert(most_blocks >= 64, "the values of this reduction are too large");

    const auto table = make_tensor_table<sizeof...(Operands)>(
        context, group_size<Operands...>, pass_chunk<reduce_groups_in_flight, Operands...>,
        operands...);
    const auto blocks = static_cast<unsigned>(std::min(table.chunks, most_blocks));
    auto* const partials = static_cast<partial_of<Reducer, Operands...>*>(context.workspace());
    const results_type results{
        partials, reinterpret_cast<typename Reducer::value_type*>(partials + most_blocks)};
    if (blocks != 0) {
        launch("reduce", reduce_chunks_kernel<Reducer, Operands...>, {blocks, pass_threads},
               context.stream(), table, reducer, results);
    }
    launch("reduce", reduce_blocks_kernel<Reducer, Operands...>, {1, pass_threads},
           context.stream(), reducer, results, blocks, result);
}

}  // namespace demi::inline DEMI_ABI::detail
