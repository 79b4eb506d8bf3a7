// SPDX-License-Identifier: MIT
/// The reduction of the host backend.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/host/detail/operand_window.hpp>
#include <demi/host/detail/partition.hpp>
#include <demi/host/host_buffer.hpp>
#include <demi/host/host_context.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {
namespace detail {

template <class Pack, class>
using pack_like = Pack;

template <class Reducer, class Pack, class... Operands>
concept accumulates_packs = requires(const Reducer& reducer,
                                     typename Reducer::template partial<Pack>& partial,
                                     const pack_like<Pack, Operands>&... values) {
    reducer.accumulate(partial, values...);
    { reducer.finish(partial) } -> std::same_as<typename Reducer::value_type>;
};

/// Takes the first `count` numbers of the windows, a multiple of two packs, into two partials:
/// twice the additions under way at a time.
template <class Pack, class Reducer, class Partial, class... Windows>
DEMI_HOST_KERNEL void accumulate_pairs(const Reducer& reducer, Partial& even, Partial& odd,
                                       std::size_t count, const Windows&... windows) {
    constexpr std::size_t step = pack_traits<Pack>::count;
    for (std::size_t i = 0; i < count; i += 2 * step) {
        reducer.accumulate(even, windows.load(i)...);
        reducer.accumulate(odd, windows.load(i + step)...);
    }
}

/// The reduction of one chunk of one tensor.
template <class Reducer, class... Operands>
struct reduce_piece {
    using value_type = typename Reducer::value_type;

    host_isa isa;
    const Reducer& reducer;
    const std::tuple<const Operands&...>& operands;
    tensor_piece piece;
    value_type& result;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        run_operands<Isa>(std::index_sequence_for<Operands...>{});
    }

private:
    template <host_isa Isa, std::size_t... Index>
    DEMI_HOST_KERNEL void run_operands(std::index_sequence<Index...>) const {
        using scalar = scalar_of_pass<Operands...>;
        using packs = lanes<lane_count<Isa>>;
        constexpr bool takes_packs =
            std::same_as<scalar, float> && accumulates_packs<Reducer, packs, Operands...>;
        using pack = std::conditional_t<takes_packs, packs, scalar>;
        // Whole pairs of packs, then the rest one by one, so that nothing is counted twice.
        const std::size_t rest = (piece.end - piece.begin) % (2 * pack_traits<pack>::count);
        result = reduce_pairs<pack>(
            piece.end - rest,
            operand_window<pack, Operands>(isa, std::get<Index>(operands), piece.tensor)...);
        if (rest != 0) {
            const value_type last = reduce_scalars<scalar>(
                piece.end - rest,
                operand_window<scalar, Operands>(isa, std::get<Index>(operands), piece.tensor)...);
            result = reducer.combine(result, last);
        }
        if constexpr (requires { reducer.wants_inspection(result); }) {
            if (reducer.wants_inspection(result)) {
                inspect<scalar>(operand_window<scalar, Operands>(isa, std::get<Index>(operands),
                                                                 piece.tensor)...);
            }
        }
    }

    template <class Pack, class... Windows>
    DEMI_HOST_KERNEL value_type reduce_pairs(std::size_t end, Windows&&... windows) const {
        typename Reducer::template partial<Pack> even{}, odd{};
        for (std::size_t i = piece.begin; i < end; i += block_elements) {
            const std::size_t count = end - i < block_elements ? end - i : block_elements;
            (windows.open(i, count), ...);
            accumulate_pairs<Pack>(reducer, even, odd, count, windows...);
        }
        return reducer.combine(reducer.finish(even), reducer.finish(odd));
    }

    template <class Scalar, class... Windows>
    DEMI_HOST_KERNEL value_type reduce_scalars(std::size_t begin, Windows&&... windows) const {
        typename Reducer::template partial<Scalar> partial{};
        const std::size_t count = piece.end - begin;
        (windows.open(begin, count), ...);
        for (std::size_t i = 0; i < count; ++i) reducer.accumulate(partial, windows.load(i)...);
        return reducer.finish(partial);
    }

    template <class Scalar, class... Windows>
    [[gnu::cold, gnu::noinline]] void inspect(Windows&&... windows) const {
        for (std::size_t i = piece.begin; i < piece.end; i += block_elements) {
            const std::size_t rest = piece.end - i;
            const std::size_t count = rest < block_elements ? rest : block_elements;
            (windows.open(i, count), ...);
            for (std::size_t j = 0; j < count; ++j) {
                reducer.inspect(result, element_position{piece.tensor, i + j}, windows.load(j)...);
            }
        }
    }
};

/// Reduces the operands; see requirement 6 of `backend`.
///
/// Every tensor is cut into chunks of a fixed size, and the values of the chunks are combined in
/// list order: the bits do not depend on the number of threads. One pass; returns when it is done.
/// Throws `out_of_memory` when there is no room for one value per chunk.
template <class Reducer, class First, class... Rest>
void host_reduce(const host_context& context, typename Reducer::value_type* result,
                 const Reducer& reducer, const First& first, const Rest&... rest) {
    using value_type = typename Reducer::value_type;
    const std::tuple<const First&, const Rest&...> operands(first, rest...);
    const auto reduce_chunk = [&](const tensor_piece& chunk) {
        value_type value{};
        run_on(context.isa,
               reduce_piece<Reducer, First, Rest...>{context.isa, reducer, operands, chunk, value});
        return value;
    };
    value_type total{};
    if (!worth_splitting(context, first.tensors)) {
        visit_chunks(first.tensors, 0, count_chunks(first.tensors),
                     [&](std::size_t, const tensor_piece& chunk) {
                         total = reducer.combine(total, reduce_chunk(chunk));
                     });
    } else {
        const std::size_t chunks = count_chunks(first.tensors);
        host_buffer<value_type> values(chunks, context.memory);
        run_split(context, chunks, [&](std::size_t begin, std::size_t end) {
            visit_chunks(first.tensors, begin, end, [&](std::size_t i, const tensor_piece& chunk) {
                values.data()[i] = reduce_chunk(chunk);
            });
        });
        for (std::size_t i = 0; i < chunks; ++i) total = reducer.combine(total, values.data()[i]);
    }
    *result = total;
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
