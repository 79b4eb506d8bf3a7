// SPDX-License-Identifier: MIT
/// The conversion of a matrix whose source and target have the same layout.
#pragma once

#include <demi/cuda/detail/matrix_lines.cuh>

#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// Each warp takes a piece of a line: whole groups of up to 16 bytes where source and target allow
/// that, single elements before and after.
template <class From, class To, class Element>
struct line_cast {
    static constexpr unsigned group = static_cast<unsigned>(
        widest_access / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To)));
    static constexpr unsigned groups_in_flight = group > 8 ? 2 : 4;
    static constexpr unsigned warp = 32;
    static constexpr std::uint64_t piece_length = warp * groups_in_flight * group;

    matrix_lines<const From> source;
    matrix_lines<To> target;
    std::uint64_t lines;
    std::uint64_t length;
    Element element;

    /// One more than the whole ones: the first piece has what is before the first group.
    __host__ __device__ std::uint64_t pieces_of_line() const { return length / piece_length + 1; }
    __host__ __device__ std::uint64_t pieces() const { return lines * pieces_of_line(); }

    __device__ void run() const {
        auto worker = element.begin();
        const std::uint64_t stride = std::uint64_t{gridDim.x} * (pass_threads / warp);
        std::uint64_t piece = blockIdx.x * std::uint64_t{pass_threads / warp} + threadIdx.x / warp;
        for (; piece < pieces(); piece += stride) {
            const std::uint64_t line = piece / pieces_of_line();
            convert_piece(worker, line, piece - line * pieces_of_line());
        }
        worker.end();
    }

private:
    using source_group = element_group<From, group>;
    using target_group = element_group<To, group>;

    /// Elements before the first place where source and target both stand at a whole group;
    /// `group` where there is none.
    __device__ unsigned head_of(const From* from, const To* to) const {
        unsigned head = 0;
        while (head < group &&
               (reinterpret_cast<std::uintptr_t>(from + head) % sizeof(source_group) != 0 ||
                reinterpret_cast<std::uintptr_t>(to + head) % sizeof(target_group) != 0)) {
            ++head;
        }
        return head;
    }

    template <class Worker>
    __device__ void convert_piece(Worker& worker, std::uint64_t line, std::uint64_t piece) const {
        const From* const from = source.at(line, 0);
        To* const to = target.at(line, 0);
        const unsigned head = head_of(from, to);
        const bool has_groups = head < group;
        const std::uint64_t first_group = ::min(std::uint64_t{has_groups ? head : 0u}, length);
        const std::uint64_t begin = ::min(first_group + piece * piece_length, length);
        const std::uint64_t end = ::min(begin + piece_length, length);
        const unsigned groups = has_groups ? static_cast<unsigned>((end - begin) / group) : 0u;
        const unsigned lane = threadIdx.x % warp;

        source_group held[groups_in_flight];
#pragma unroll
        for (unsigned i = 0; i < groups_in_flight; ++i) {
            const unsigned at = lane + i * warp;
            if (at < groups) held[i] = load_group<source_group>(from + begin + at * group);
        }
#pragma unroll
        for (unsigned i = 0; i < groups_in_flight; ++i) {
            const unsigned at = lane + i * warp;
            if (at >= groups) continue;
            const std::uint64_t position = begin + at * group;
            target_group result;
#pragma unroll
            for (unsigned j = 0; j < group; ++j) {
                result.values[j] = worker(held[i].values[j], line * length + position + j);
            }
            store_group(to + position, result);
        }

        const unsigned before = piece == 0 ? static_cast<unsigned>(first_group) : 0u;
        const std::uint64_t tail = begin + std::uint64_t{groups} * group;
        const unsigned singles = before + static_cast<unsigned>(end - tail);
        for (unsigned i = lane; i < singles; i += warp) {
            const std::uint64_t position = i < before ? i : tail + (i - before);
            to[position] = worker(from[position], line * length + position);
        }
    }
};

}  // namespace demi::inline DEMI_ABI::detail
