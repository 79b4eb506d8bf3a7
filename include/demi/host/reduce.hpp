// SPDX-License-Identifier: MIT
/// The reductions of the host backend.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/host/detail/partition.hpp>
#include <demi/host/detail/reduce_piece.hpp>
#include <demi/host/host_buffer.hpp>
#include <demi/host/host_context.hpp>

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace demi::inline DEMI_ABI {
namespace detail {

/// Reduces the operands chunk by chunk and hands each value to `take(tensor, value)`, in list
/// order.
///
/// Every tensor is cut into chunks of a fixed size: the values do not depend on the number of
/// threads. One pass; returns when it is done. Throws `out_of_memory` when there is no room for one
/// value per chunk.
template <class Reducer, class Take, class First, class... Rest>
void reduce_chunks(const host_context& context, const Reducer& reducer, const Take& take,
                   const First& first, const Rest&... rest) {
    using value_type = typename Reducer::value_type;
    const std::tuple<const First&, const Rest&...> operands(first, rest...);
    const std::size_t chunks = count_chunks(first.tensors);
    const auto reduce_chunk = [&](const tensor_piece& chunk) {
        value_type value{};
        run_on(context.isa,
               reduce_piece<Reducer, First, Rest...>{context.isa, reducer, operands, chunk, value});
        return value;
    };
    if (!worth_splitting(context, first.tensors)) {
        visit_chunks(first.tensors, 0, chunks, [&](std::size_t, const tensor_piece& chunk) {
            take(chunk.tensor, reduce_chunk(chunk));
        });
        return;
    }
    host_buffer<value_type> values(chunks, context.memory);
    run_split(context, chunks, [&](std::size_t begin, std::size_t end) {
        visit_chunks(first.tensors, begin, end, [&](std::size_t i, const tensor_piece& chunk) {
            values.data()[i] = reduce_chunk(chunk);
        });
    });
    visit_chunks(first.tensors, 0, chunks, [&](std::size_t i, const tensor_piece& chunk) {
        take(chunk.tensor, values.data()[i]);
    });
}

/// See requirement 6 of `backend`, and `reduce_chunks`.
template <class Reducer, class... Operands>
void host_reduce(const host_context& context, typename Reducer::value_type* result,
                 const Reducer& reducer, const Operands&... operands) {
    using value_type = typename Reducer::value_type;
    value_type total{};
    reduce_chunks(
        context, reducer,
        [&](std::size_t, const value_type& value) { total = reducer.combine(total, value); },
        operands...);
    *result = total;
}

/// See requirement 10 of `backend`, and `reduce_chunks`.
template <class Reducer, class First, class... Rest>
void host_reduce_each(const host_context& context, typename Reducer::value_type* values,
                      const Reducer& reducer, const First& first, const Rest&... rest) {
    using value_type = typename Reducer::value_type;
    std::fill_n(values, first.tensors.size(), value_type{});
    reduce_chunks(
        context, reducer,
        [&](std::size_t tensor, const value_type& value) {
            values[tensor] = reducer.combine(values[tensor], value);
        },
        first, rest...);
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
