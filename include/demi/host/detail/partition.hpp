// SPDX-License-Identifier: MIT
/// How the elements of a tensor list are dealt out to threads.
#pragma once

#include <demi/host/host_context.hpp>

#include <cstddef>
#include <span>

namespace demi::inline DEMI_ABI {
namespace detail {

/// Elements `begin` to `end` of one tensor.
struct tensor_piece {
    std::size_t tensor = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// A tensor is cut into chunks of this size, the last one being what is left.
inline constexpr std::size_t chunk_elements = 16 * 1024;

constexpr std::size_t chunks_of(std::size_t elements) {
    return elements / chunk_elements + (elements % chunk_elements != 0 ? 1 : 0);
}

template <class T>
std::size_t count_chunks(std::span<const std::span<T>> tensors) {
    std::size_t chunks = 0;
    for (const std::span<T>& tensor : tensors) chunks += chunks_of(tensor.size());
    return chunks;
}

/// Calls `visit(chunk number, piece)` for the chunks `begin` to `end` of a list.
template <class T, class Visit>
void visit_chunks(std::span<const std::span<T>> tensors, std::size_t begin, std::size_t end,
                  const Visit& visit) {
    std::size_t first = 0;  // the number of the tensor's first chunk
    for (std::size_t t = 0; t < tensors.size() && first < end; ++t) {
        const std::size_t size = tensors[t].size();
        const std::size_t next = first + chunks_of(size);
        for (std::size_t i = begin > first ? begin : first; i < next && i < end; ++i) {
            const std::size_t at = (i - first) * chunk_elements;
            visit(i, tensor_piece{t, at, size - at < chunk_elements ? size : at + chunk_elements});
        }
        first = next;
    }
}

/// Calls `visit(piece)` for what the chunks `begin` to `end` of a list have of each tensor.
template <class T, class Visit>
void visit_pieces(std::span<const std::span<T>> tensors, std::size_t begin, std::size_t end,
                  const Visit& visit) {
    std::size_t first = 0;  // the number of the tensor's first chunk
    for (std::size_t t = 0; t < tensors.size() && first < end; ++t) {
        const std::size_t size = tensors[t].size();
        const std::size_t next = first + chunks_of(size);
        const std::size_t from = begin > first ? begin : first;
        if (from < next) {
            visit(tensor_piece{t, (from - first) * chunk_elements,
                               end < next ? (end - first) * chunk_elements : size});
        }
        first = next;
    }
}

/// Whether a pass over the list is long enough to be shared among threads.
template <class T>
bool worth_splitting(const host_context& context, std::span<const std::span<T>> tensors) {
    if (context.executor->concurrency < 2) return false;
    std::size_t elements = 0;
    for (const std::span<T>& tensor : tensors) elements += tensor.size();
    return elements > parallel_threshold;
}

/// Calls `work(begin, end)` for ranges that make up 0 to `count`, on the executor's threads.
template <class Work>
void run_split(const host_context& context, std::size_t count, const Work& work) {
    constexpr std::size_t ranges_per_thread = 4;  // evens out threads of different speed
    const std::size_t ranges = context.executor->concurrency * ranges_per_thread;
    const std::size_t step = count / ranges + (count % ranges != 0 ? 1 : 0);
    context.executor->run(count / step + (count % step != 0 ? 1 : 0), [&](std::size_t range) {
        const std::size_t begin = range * step;
        work(begin, count - begin < step ? count : begin + step);
    });
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
