// SPDX-License-Identifier: MIT
/// The reduction of one chunk of one tensor on the host.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/host/detail/operand_window.hpp>
#include <demi/host/detail/partition.hpp>

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

/// Takes the first `count` numbers of the operands, a multiple of two packs, into two partials:
/// twice the additions under way at a time.
template <class Pack, class Reducer, class Partial, class... Numbers>
DEMI_HOST_KERNEL void accumulate_pairs(const Reducer& reducer, Partial& even, Partial& odd,
                                       std::size_t count, Numbers... numbers) {
    constexpr std::size_t step = pack_traits<Pack>::count;
    for (std::size_t i = 0; i < count; i += 2 * step) {
        reducer.accumulate(even, numbers.load(i)...);
        reducer.accumulate(odd, numbers.load(i + step)...);
    }
}

/// Independent quick partials of a block, and the packs that each of them takes.
inline constexpr std::size_t quick_chains = 8;
inline constexpr std::size_t quick_steps = 16;

/// `Count` partials, as a tree: compilers keep an array of them in memory.
template <class Partial, std::size_t Count>
struct partial_tree {
    partial_tree<Partial, Count / 2> left, right;

    template <std::size_t Step, class Quick, class Numbers>
    DEMI_HOST_KERNEL void accumulate(const Quick& quick, std::size_t i, Numbers numbers) {
        left.template accumulate<Step>(quick, i, numbers);
        right.template accumulate<Step>(quick, i + Count / 2 * Step, numbers);
    }
    template <class Quick>
    DEMI_HOST_KERNEL Partial& join(const Quick& quick) {
        Partial& joined = left.join(quick);
        quick.join(joined, right.join(quick));
        return joined;
    }
    DEMI_HOST_KERNEL Partial& first() { return left.first(); }
};

template <class Partial>
struct partial_tree<Partial, 1> {
    Partial partial{};

    template <std::size_t, class Quick, class Numbers>
    DEMI_HOST_KERNEL void accumulate(const Quick& quick, std::size_t i, Numbers numbers) {
        quick.accumulate(partial, numbers.load(i));
    }
    template <class Quick>
    DEMI_HOST_KERNEL Partial& join(const Quick&) {
        return partial;
    }
    DEMI_HOST_KERNEL Partial& first() { return partial; }
};

/// Takes the first `count` numbers of an operand, a multiple of a pack, into one value.
template <class Pack, class Quick, class Numbers>
DEMI_HOST_KERNEL typename Quick::value_type reduce_quick_block(const Quick& quick,
                                                               std::size_t count, Numbers numbers) {
    constexpr std::size_t step = pack_traits<Pack>::count;
    partial_tree<typename Quick::template partial<Pack>, quick_chains> partials;
    std::size_t i = 0;
    for (; i + quick_chains * step <= count; i += quick_chains * step) {
        partials.template accumulate<step>(quick, i, numbers);
    }
    for (; i < count; i += step) quick.accumulate(partials.first(), numbers.load(i));
    return quick.finish(partials.join(quick));
}

/// The packs for the quick reduction of a reducer that has one: pairs of 16-bit numbers if it takes
/// them, else packs of floats.
template <class Reducer, host_isa Isa, class First, class... Rest>
constexpr auto choose_quick_pack() {
    using element = std::remove_const_t<typename First::element_type>;
    if constexpr (!requires { typename Reducer::quick; } || sizeof...(Rest) != 0 ||
                  std::same_as<element, double>) {
        return std::type_identity<void>{};
    } else if constexpr (same_format<element, bfloat16> && has_pairs<bfloat16, Isa>) {
        return std::type_identity<pair_lanes<bfloat16, Isa>>{};
    } else if constexpr (same_format<element, float16> && has_pairs<float16, Isa>) {
        return std::type_identity<pair_lanes<float16, Isa>>{};
    } else {
        return std::type_identity<lanes<lane_count<Isa>>>{};
    }
}

/// The reduction of one chunk of one tensor.
template <class Reducer, class... Operands>
struct reduce_piece {
    using value_type = typename Reducer::value_type;

    static constexpr bool takes_dot_products =
        (same_format<std::remove_const_t<typename Operands::element_type>, bfloat16> && ...) &&
        requires {
        typename Reducer::quick;
    };

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
        using quick_pack = typename decltype(choose_quick_pack<Reducer, Isa, Operands...>())::type;
        std::size_t begin = piece.begin;
        if constexpr (!std::same_as<quick_pack, void>) {
            begin = reduce_quickly<quick_pack, pack, Operands...>();
        }
        // Whole pairs of packs, then the rest one by one, so that nothing is counted twice.
        const std::size_t rest = (piece.end - begin) % (2 * pack_traits<pack>::count);
        if (begin + rest != piece.end) {
            const value_type most = reduce_pairs<pack>(
                begin, piece.end - rest,
                operand_window<pack, Operands>(isa, std::get<Index>(operands), piece.tensor)...);
            result = reducer.combine(result, most);
        }
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

    /// Reduces as many whole blocks as there are and returns their end. A block whose value is not
    /// confirmed is reduced again.
    template <class QuickPack, class Pack, class Operand>
    DEMI_HOST_KERNEL std::size_t reduce_quickly() const {
        using window = operand_window<QuickPack, Operand>;
        constexpr std::size_t unit = 2 * pack_traits<Pack>::count;
        constexpr std::size_t full = quick_chains * quick_steps * pack_traits<QuickPack>::count;
        constexpr std::size_t most =
            window::direct || full < block_elements ? full : block_elements;
        const Operand& operand = std::get<0>(operands);
        const typename Reducer::quick quick{};
        window numbers(isa, operand, piece.tensor);
        value_type total{};
        std::size_t i = piece.begin;
        while (piece.end - i >= unit) {
            const std::size_t rest = (piece.end - i) / unit * unit;
            const std::size_t count = rest < most ? rest : most;
            value_type value = reduce_quick_block<QuickPack>(quick, count, numbers.open(i, count));
            if (!reducer.confirms(value)) {
                value = reduce_pairs<Pack>(
                    i, i + count, operand_window<Pack, Operand>(isa, operand, piece.tensor));
            }
            total = reducer.combine(total, value);
            i += count;
        }
        result = total;
        return i;
    }

    template <class Pack, class... Windows>
    DEMI_HOST_KERNEL value_type reduce_pairs(std::size_t begin, std::size_t end,
                                             Windows&&... windows) const {
        typename Reducer::template partial<Pack> even{}, odd{};
        for (std::size_t i = begin; i < end; i += block_elements) {
            const std::size_t count = end - i < block_elements ? end - i : block_elements;
            accumulate_pairs<Pack>(reducer, even, odd, count, windows.open(i, count)...);
        }
        return reducer.combine(reducer.finish(even), reducer.finish(odd));
    }

    template <class Scalar, class... Windows>
    DEMI_HOST_KERNEL value_type reduce_scalars(std::size_t begin, Windows&&... windows) const {
        typename Reducer::template partial<Scalar> partial{};
        const std::size_t count = piece.end - begin;
        accumulate_scalars(partial, count, windows.open(begin, count)...);
        return reducer.finish(partial);
    }

    template <class Partial, class... Numbers>
    DEMI_HOST_KERNEL void accumulate_scalars(Partial& partial, std::size_t count,
                                             Numbers... numbers) const {
        for (std::size_t i = 0; i < count; ++i) reducer.accumulate(partial, numbers.load(i)...);
    }

    template <class Scalar, class... Windows>
    [[gnu::cold, gnu::noinline]] void inspect(Windows&&... windows) const {
        for (std::size_t i = piece.begin; i < piece.end; i += block_elements) {
            const std::size_t rest = piece.end - i;
            const std::size_t count = rest < block_elements ? rest : block_elements;
            inspect_block(i, count, windows.open(i, count)...);
        }
    }

    template <class... Numbers>
    void inspect_block(std::size_t begin, std::size_t count, Numbers... numbers) const {
        for (std::size_t i = 0; i < count; ++i) {
            reducer.inspect(result, element_position{piece.tensor, begin + i}, numbers.load(i)...);
        }
    }
};

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
