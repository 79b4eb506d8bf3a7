// SPDX-License-Identifier: MIT
/// The element-wise pass of the host backend.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/host/detail/copy_pass.hpp>
#include <demi/host/detail/operand_window.hpp>
#include <demi/host/detail/partition.hpp>
#include <demi/host/host_context.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {
namespace detail {

template <class Functor, class Pack, class... Operands>
concept takes_packs = std::invocable<const Functor&, argument_of<Pack, Operands>...>;

/// The number type that a functor is called with: packs if it takes them, else scalars. Whether it
/// does is not asked in vain: a functor without a declared result would be compiled for packs.
template <host_isa Isa, class Functor, class... Operands>
constexpr auto choose_pack() {
    using scalar = scalar_of_pass<Operands...>;
    using packs = lanes<lane_count<Isa>>;
    if constexpr (!std::same_as<scalar, float>) {
        return std::type_identity<scalar>{};
    } else if constexpr (takes_packs<Functor, packs, Operands...>) {
        return std::type_identity<packs>{};
    } else {
        return std::type_identity<scalar>{};
    }
}

template <host_isa Isa, class Functor, class... Operands>
using pack_for = typename decltype(choose_pack<Isa, Functor, Operands...>())::type;

/// Numbers that a functor for scalars is called with at a time.
inline constexpr std::size_t scalar_step = 64;

template <class Scalar, class>
struct scalar_block {
    Scalar numbers[scalar_step];
};

/// Calls a functor for scalars for `scalar_step` numbers from `i` on. They lie in arrays of their
/// own meanwhile, and their count is fixed: so compilers see without a test that no store touches
/// another operand, and make vectors of the loop where the functor allows it.
template <class Scalar, class... Operands, class Functor, class... Numbers, std::size_t... Index>
DEMI_HOST_KERNEL void transform_scalars(const Functor& functor, std::size_t i,
                                        std::index_sequence<Index...>, Numbers... numbers) {
    std::tuple<scalar_block<Scalar, Operands>...> blocks;
    const auto load = [&](auto& block, auto from) {
        for (std::size_t j = 0; j < scalar_step; ++j) block.numbers[j] = from.load(i + j);
    };
    const auto store = [&](const auto& block, auto to) {
        for (std::size_t j = 0; j < scalar_step; ++j) to.store(i + j, block.numbers[j]);
    };
    (load(std::get<Index>(blocks), numbers), ...);
    for (std::size_t j = 0; j < scalar_step; ++j) {
        functor(static_cast<argument_of<Scalar, Operands>>(std::get<Index>(blocks).numbers[j])...);
    }
    (store(std::get<Index>(blocks), numbers), ...);
}

/// Calls the functor for every pack of the first `count` numbers of the operands.
template <class Pack, class... Operands, class Functor, class... Numbers, std::size_t... Index>
DEMI_HOST_KERNEL void transform_packs(const Functor& functor, std::size_t count,
                                      std::index_sequence<Index...> indices, Numbers... numbers) {
    std::size_t i = 0;
    if constexpr (pack_traits<Pack>::count == 1) {
        for (; i + scalar_step <= count; i += scalar_step) {
            transform_scalars<Pack, Operands...>(functor, i, indices, numbers...);
        }
    }
    for (; i < count; i += pack_traits<Pack>::count) {
        std::tuple<decltype((static_cast<void>(numbers), Pack{}))...> values{numbers.load(i)...};
        functor(static_cast<argument_of<Pack, Operands>>(std::get<Index>(values))...);
        (numbers.store(i, std::get<Index>(values)), ...);
    }
}

/// One tensor's part of a pass.
template <class Functor, class... Operands>
struct transform_piece {
    host_isa isa;
    const Functor& functor;
    const std::tuple<const Operands&...>& operands;
    tensor_piece piece;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        run_operands<Isa>(std::index_sequence_for<Operands...>{});
    }

private:
    template <host_isa Isa, std::size_t... Index>
    DEMI_HOST_KERNEL void run_operands(std::index_sequence<Index...>) const {
        using pack = pack_for<Isa, Functor, Operands...>;
        run_windows<pack>(
            operand_window<pack, Operands>(isa, std::get<Index>(operands), piece.tensor)...);
    }

    template <class Pack, class... Windows>
    DEMI_HOST_KERNEL void run_windows(Windows&&... windows) const {
        const Functor local = functor;  // so that stores cannot be taken to change its members
        const auto indices = std::index_sequence_for<Operands...>{};
        const std::size_t rest = (piece.end - piece.begin) % pack_traits<Pack>::count;
        const std::size_t end = piece.end - rest;
        for (std::size_t i = piece.begin; i < end; i += block_elements) {
            const std::size_t count = end - i < block_elements ? end - i : block_elements;
            transform_packs<Pack, Operands...>(local, count, indices, windows.open(i, count)...);
            (windows.close(i, count), ...);
        }
        if (rest != 0) {
            transform_packs<Pack, Operands...>(local, rest, indices,
                                               windows.open_rest(end, rest)...);
            (windows.close_rest(end, rest), ...);
        }
    }
};

template <class Functor, class First, class... Rest>
void transform_loaded(const host_context& context, const Functor& functor, const First& first,
                      const Rest&... rest) {
    if constexpr (requires {
                      { functor.skip() } -> std::convertible_to<bool>;
                  }) {
        if (functor.skip()) return;
    }
    const std::tuple<const First&, const Rest&...> operands(first, rest...);
    const auto transform_chunks = [&](std::size_t begin, std::size_t end) {
        visit_chunks(first.tensors, begin, end, [&](std::size_t, const tensor_piece& chunk) {
            run_on(context.isa,
                   transform_piece<Functor, First, Rest...>{context.isa, functor, operands, chunk});
        });
    };
    const std::size_t chunks = count_chunks(first.tensors);
    if (worth_splitting(context, first.tensors)) {
        run_split(context, chunks, transform_chunks);
    } else {
        transform_chunks(0, chunks);
    }
}

/// Calls `functor` for every element of every tensor; see requirement 5 of `backend`.
///
/// Packs of a fixed size are computed in any order on any thread: the result of an element does not
/// depend on its place. One pass; returns when it is done.
template <class Functor, class... Operands>
void host_transform(const host_context& context, const Functor& functor,
                    const Operands&... operands) {
    if constexpr (is_copy_pass<Functor, Operands...>) {
        host_copy(context, operands...);
    } else if constexpr (requires { functor.load(); }) {
        transform_loaded(context, functor.load(), operands...);
    } else {
        transform_loaded(context, functor, operands...);
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
