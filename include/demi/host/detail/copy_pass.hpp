// SPDX-License-Identifier: MIT
/// The pass that only copies one operand to another: a conversion without numbers in between.
#pragma once

#include <demi/core/operand.hpp>
#include <demi/host/detail/operand_window.hpp>
#include <demi/host/detail/partition.hpp>
#include <demi/host/detail/stream.hpp>
#include <demi/host/host_context.hpp>

#include <cstddef>

namespace demi::inline DEMI_ABI {
namespace detail {

/// Whether a pass with this functor is a copy: its type has a constant member `copies` that is
/// true.
template <class Functor, class... Operands>
inline constexpr bool is_copy_pass = false;

template <class Functor, class From, class To>
    requires(From::mode == access::read && To::mode == access::write && Functor::copies)
inline constexpr bool is_copy_pass<Functor, From, To> = true;

/// Converts a piece of a tensor, past the caches if so wanted.
template <class From, class To>
void copy_piece(const host_context& context, const From& from, const To& to,
                const tensor_piece& piece, bool streams) {
    const auto* source = from.tensors[piece.tensor].data() + piece.begin;
    auto* target = to.tensors[piece.tensor].data() + piece.begin;
    const std::size_t count = piece.end - piece.begin;
    const auto rounding = block_rounding_for(to.rounding, piece.tensor, piece.begin);
    if (streams) {
        convert_stream(context.isa, source, target, count, rounding);
    } else {
        convert_block(context.isa, source, target, count, rounding);
    }
}

/// The whole of a list, shared among threads where that pays.
template <class From, class To>
[[gnu::noinline]] void copy_tensors(host_context context, From from, To to,
                                    std::size_t most_cached) {
    constexpr std::size_t element_bytes =
        sizeof(typename From::element_type) + sizeof(typename To::element_type);
    std::size_t elements = 0;
    for (const auto& tensor : to.tensors) elements += tensor.size();
    const bool streams = elements * element_bytes > most_cached;
    const auto copy_chunks = [&](std::size_t begin, std::size_t end) {
        visit_pieces(from.tensors, begin, end, [&](const tensor_piece& piece) {
            copy_piece(context, from, to, piece, streams);
        });
        if (streams) finish_stream();
    };
    const std::size_t chunks = count_chunks(from.tensors);
    if (worth_splitting(context, from.tensors)) {
        run_split(context, chunks, copy_chunks);
    } else {
        copy_chunks(0, chunks);
    }
}

/// Converts every tensor of `from` into that of `to`, past the caches when the tensors together
/// have more than `most_cached` bytes. One pass; returns when it is done.
template <class From, class To>
[[gnu::always_inline]] inline void host_copy(const host_context& context, const From& from,
                                             const To& to,
                                             std::size_t most_cached = stream_threshold) {
    const bool is_short = to.tensors.size() == 1 && to.tensors[0].size() <= chunk_elements &&
                          most_cached >= chunk_elements * 16;
    if (is_short) {
        // In the caches this takes hardly longer than finding out how to share a list.
        convert_block(context.isa, from.tensors[0].data(), to.tensors[0].data(),
                      to.tensors[0].size(), block_rounding_for(to.rounding, 0, 0));
    } else {
        copy_tensors(context, from, to, most_cached);
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
