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

/// Converts every tensor of `from` into that of `to`, past the caches when the tensors together
/// have more than `most_cached` bytes. One pass; returns when it is done.
template <class From, class To>
void host_copy(const host_context& context, const From& from, const To& to,
               std::size_t most_cached = stream_threshold) {
    std::size_t bytes = 0;
    for (const auto& tensor : to.tensors) {
        bytes += tensor.size() *
                 (sizeof(typename From::element_type) + sizeof(typename To::element_type));
    }
    const bool streams = bytes > most_cached;
    const auto copy_chunks = [&](std::size_t begin, std::size_t end) {
        visit_chunks(from.tensors, begin, end, [&](std::size_t, const tensor_piece& chunk) {
            const auto* source = from.tensors[chunk.tensor].data() + chunk.begin;
            auto* target = to.tensors[chunk.tensor].data() + chunk.begin;
            const std::size_t count = chunk.end - chunk.begin;
            const auto rounding = block_rounding_for(to.rounding, chunk.tensor, chunk.begin);
            if (streams) {
                convert_stream(context.isa, source, target, count, rounding);
            } else {
                convert_block(context.isa, source, target, count, rounding);
            }
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

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
