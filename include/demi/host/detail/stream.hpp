// SPDX-License-Identifier: MIT
/// Conversion past the caches, for results too large to be found there again.
#pragma once

#include <demi/host/block_convert.hpp>

#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI {
namespace detail {

/// Below this many bytes in and out together, ordinary stores are as fast or much faster.
inline constexpr std::size_t stream_threshold = std::size_t{8} * 1024 * 1024;

/// A longer block is streamed in parts of this many elements: four places in each of them are far
/// enough apart.
inline constexpr std::size_t stream_elements = 256 * 1024;

/// The rounding of the elements from `index` of a block on.
template <class Rounding>
Rounding rounding_from(Rounding rounding, std::size_t) {
    return rounding;
}

inline stochastic_block rounding_from(stochastic_block rounding, std::size_t index) {
    return {rounding.key, rounding.first + index};
}

/// Does what `convert_block` does, past the caches; `finish_stream` has to follow.
template <class To, class From, class Rounding>
void convert_stream(host_isa isa, const From* from, To* to, std::size_t count, Rounding rounding) {
    const std::size_t bytes_before_line =
        (0 - reinterpret_cast<std::uintptr_t>(to)) % cache_line_bytes;
    std::size_t head = bytes_before_line / sizeof(To);
    if (bytes_before_line % sizeof(To) != 0 || head > count) head = count;
    const std::size_t tail = (count - head) % (cache_line_bytes / sizeof(To));
    const std::size_t body = count - head - tail;
    if (head != 0) convert_block(isa, from, to, head, rounding);
    for (std::size_t i = head; i < head + body; i += stream_elements) {
        const std::size_t left = head + body - i;
        convert_block<streaming_stores>(isa, from + i, to + i,
                                        left < stream_elements ? left : stream_elements,
                                        rounding_from(rounding, i));
    }
    if (tail == 0) return;
    convert_block(isa, from + head + body, to + head + body, tail,
                  rounding_from(rounding, head + body));
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
