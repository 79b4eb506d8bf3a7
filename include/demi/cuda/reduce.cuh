// SPDX-License-Identifier: MIT
/// The reduction of the CUDA backend: two launches for any number of tensors, the same bits always.
#pragma once

#include <demi/cuda/detail/chunk_walk.cuh>
#include <demi/cuda/detail/pass_operand.cuh>
#include <demi/cuda/detail/tensor_table.hpp>
#include <demi/cuda/launch.cuh>
#include <demi/cuda/memory.hpp>

#include <cub/block/block_reduce.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

/// Loads only, and few registers: more of them can be under way.
inline constexpr unsigned reduce_groups_in_flight = 4;
/// How many groups go into one quick sum: 16 elements are the most.
template <class... Operands>
inline constexpr unsigned quick_groups = std::min<unsigned>(16 / group_size<Operands...>,
                                                            reduce_groups_in_flight);
/// Fixed, so that the order of additions is too, on every device.
inline constexpr std::uint64_t most_reduce_blocks = 1024;

template <class Reducer, class... Operands>
using partial_of = typename Reducer::template partial<pass_number<Operands...>>;

/// Whether a reducer has a quick one, whose sums it can take in.
template <class Reducer, class Real>
concept reduces_quickly = requires(const Reducer& reducer,
                                   typename Reducer::template partial<Real>& into,
                                   const typename Reducer::quick::template partial<Real>& few) {
    { reducer.absorb(into, few) } -> std::same_as<bool>;
};

template <class Reducer>
concept inspects = requires(const Reducer& reducer, const typename Reducer::value_type& value) {
    reducer.wants_inspection(value);
};

/// Combines one value of every thread; the result is thread 0's.
template <class T, class Combine>
__device__ T reduce_block(const T& value, const Combine& combine) {
    using block_reduce = cub::BlockReduce<T, pass_threads>;
    __shared__ typename block_reduce::TempStorage memory;
    __syncthreads();
    return block_reduce(memory).Reduce(value, combine);
}

/// Where the blocks leave what they found: a partial, and the value where it took an inspection.
template <class Reducer, class Partial>
struct block_results {
    using value_type = typename Reducer::value_type;

    Partial* partials;
    value_type* inspected;

    static constexpr std::size_t bytes_per_block = sizeof(Partial) + sizeof(value_type);

    static block_results in(void* memory, std::size_t blocks) {
        auto* const partials = static_cast<Partial*>(memory);
        return {partials, reinterpret_cast<value_type*>(partials + blocks)};
    }

    /// Combines what the blocks from `first` to `end` found; the result is thread 0's.
    __device__ value_type combined(const Reducer& reducer, std::uint64_t first,
                                   std::uint64_t end) const {
        value_type mine{};
        for (std::uint64_t i = first + threadIdx.x; i < end; i += pass_threads) {
            mine = reducer.combine(mine, of_block(reducer, i));
        }
        return reduce_block(mine, [&](const value_type& left, const value_type& right) {
            return reducer.combine(left, right);
        });
    }

private:
    __device__ value_type of_block(const Reducer& reducer, std::uint64_t block) const {
        const value_type value = reducer.finish(partials[block]);
        if constexpr (inspects<Reducer>) {
            if (reducer.wants_inspection(value)) return inspected[block];
        }
        return value;
    }
};

/// The first of two launches: every block reduces its chunks.
template <class Reducer, class... Operands>
struct reduce_chunks_pass {
    using number = pass_number<Operands...>;
    using partial = partial_of<Reducer, Operands...>;
    using value_type = typename Reducer::value_type;

    tensor_table<sizeof...(Operands)> table;
    unsigned steps;  ///< of a chunk
    Reducer reducer;
    block_results<Reducer, partial> results;

    __device__ void run() const {
        partial mine{};
        walk_chunks<reduce_groups_in_flight, Operands...>(
            table, steps, [&](auto& groups, const auto&) { accumulate_groups(mine, groups); },
            [&](auto& held, const auto&, std::uint64_t) { accumulate(reducer, mine, held); });
        const partial all = reduce_block(mine, [&](const partial& left, const partial& right) {
            partial both = left;
            reducer.join(both, right);
            return both;
        });
        if (threadIdx.x == 0) results.partials[blockIdx.x] = all;
        if constexpr (inspects<Reducer>) {
            __shared__ bool wanted;
            if (threadIdx.x == 0) wanted = reducer.wants_inspection(reducer.finish(all));
            __syncthreads();
            if (wanted) inspect(mine);
        }
    }

private:
    template <class By, class Partial, class Held>
    __device__ static void accumulate(const By& by, Partial& into, Held& held) {
        held.widen_all();
        held.call_each([&](auto... values) { by.accumulate(into, values...); });
    }

    template <class Groups>
    __device__ void accumulate_groups(partial& into, Groups& groups) const {
        constexpr unsigned step = quick_groups<Operands...>;
#pragma unroll
        for (unsigned first = 0; first < reduce_groups_in_flight; first += step) {
            if constexpr (reduces_quickly<Reducer, number>) {
                const typename Reducer::quick quick{};
                typename Reducer::quick::template partial<number> few{};
                groups.template each_of<step>(
                    first, [&](auto& held, std::uint64_t) { accumulate(quick, few, held); });
                if (reducer.absorb(into, few)) continue;
            }
            groups.template each_of<step>(
                first, [&](auto& held, std::uint64_t) { accumulate(reducer, into, held); });
        }
    }

    /// Walks again, in small steps that need few registers; threads that found nothing do not look.
    __device__ void inspect(const partial& mine) const {
        value_type found = reducer.finish(mine);
        if (reducer.wants_inspection(found)) {
            walk_chunks<1, Operands...>(
                table, steps * reduce_groups_in_flight,
                [&](auto& held, const auto& tensor, std::uint64_t index) {
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
};

/// The second launch: one block reduces what the others found.
template <class Reducer, class Partial>
struct reduce_blocks_pass {
    Reducer reducer;
    block_results<Reducer, Partial> results;
    unsigned blocks;
    typename Reducer::value_type* result;

    __device__ void run() const {
        const auto all = results.combined(reducer, 0, blocks);
        if (threadIdx.x == 0) *result = all;
    }
};

/// The same with a block for each tensor, when every chunk had a block of its own.
template <class Reducer, class Partial, std::size_t Count>
struct reduce_tensors_pass {
    tensor_table<Count> table;
    Reducer reducer;
    block_results<Reducer, Partial> results;
    typename Reducer::value_type* values;

    __device__ void run() const {
        const std::uint32_t tensor = blockIdx.x;
        const auto all = results.combined(reducer, table.entries()[tensor].first_chunk,
                                          table.end_of_chunks(tensor));
        if (threadIdx.x == 0) values[tensor] = all;
    }
};

template <class Pass>
__global__ void __launch_bounds__(pass_threads) reduce_kernel(const __grid_constant__ Pass pass) {
    pass.run();
}

/// See requirement 6 of `backend`. Two launches; no synchronisation.
template <class Reducer, class... Operands>
void cuda_reduce(cuda_context& context, typename Reducer::value_type* result,
                 const Reducer& reducer, const Operands&... operands) {
    using partial = partial_of<Reducer, Operands...>;
    using results_type = block_results<Reducer, partial>;
    using chunks_pass = reduce_chunks_pass<Reducer, Operands...>;
    using blocks_pass = reduce_blocks_pass<Reducer, partial>;
    static_assert(std::is_trivially_copyable_v<Reducer>, "a reducer travels as bytes");
    constexpr std::uint64_t room = cuda_context::workspace_size / results_type::bytes_per_block;
    constexpr std::uint64_t most_blocks = std::min(most_reduce_blocks, room);
    static_assert(most_blocks >= 64, "the values of this reduction are too large");
    constexpr std::size_t chunk = pass_chunk<reduce_groups_in_flight, Operands...>;

    const auto table = make_tensor_table<sizeof...(Operands)>(context, group_size<Operands...>,
                                                              chunk, operands...);
    const auto blocks = static_cast<unsigned>(std::min(table.chunks, most_blocks));
    const auto results = results_type::in(context.workspace(), most_blocks);
    if (blocks != 0) {
        launch("reduce", reduce_kernel<chunks_pass>, {blocks, pass_threads}, context.stream(),
               chunks_pass{table, 1, reducer, results});
    }
    launch("reduce", reduce_kernel<blocks_pass>, {1, pass_threads}, context.stream(),
           blocks_pass{reducer, results, blocks, result});
}

/// How many steps make a chunk, so that the chunks are not many more than blocks are of use, and
/// their number depends on the shapes only.
template <class Span>
unsigned steps_per_chunk(std::span<const Span> tensors, std::size_t step_elements) {
    std::uint64_t steps = 0;
    for (const auto& tensor : tensors) steps += (tensor.size() + step_elements - 1) / step_elements;
    return static_cast<unsigned>((steps + most_reduce_blocks - 1) / most_reduce_blocks);
}

/// See requirement 10 of `backend`. Two launches; no synchronisation.
template <class Reducer, class... Operands>
void cuda_reduce_each(cuda_context& context, typename Reducer::value_type* values,
                      const Reducer& reducer, const Operands&... operands) {
    using partial = partial_of<Reducer, Operands...>;
    using results_type = block_results<Reducer, partial>;
    using chunks_pass = reduce_chunks_pass<Reducer, Operands...>;
    constexpr std::size_t count = sizeof...(Operands);
    using tensors_pass = reduce_tensors_pass<Reducer, partial, count>;
    static_assert(std::is_trivially_copyable_v<Reducer>, "a reducer travels as bytes");
    constexpr std::size_t step = pass_chunk<reduce_groups_in_flight, Operands...>;

    const unsigned steps = steps_per_chunk(std::get<0>(std::tie(operands...)).tensors, step);
    const auto table =
        make_tensor_table<count>(context, group_size<Operands...>, steps * step, operands...);
    const std::size_t bytes = table.chunks * results_type::bytes_per_block;
    const bool is_small = bytes <= cuda_context::workspace_size;
    const cuda_block memory(context.memory(), context.stream(), is_small ? 0 : bytes);
    const auto results =
        results_type::in(is_small ? context.workspace() : memory.data(), table.chunks);
    if (table.chunks != 0) {
        launch("reduce_each", reduce_kernel<chunks_pass>,
               {static_cast<unsigned>(table.chunks), pass_threads}, context.stream(),
               chunks_pass{table, steps, reducer, results});
    }
    if (table.tensors != 0) {
        launch("reduce_each", reduce_kernel<tensors_pass>, {table.tensors, pass_threads},
               context.stream(), tensors_pass{table, reducer, results, values});
    }
}

}  // namespace demi::inline DEMI_ABI::detail
