// SPDX-License-Identifier: MIT
/// The conversion of a matrix whose target has the other layout: a transposition in memory.
#pragma once

#include <demi/cuda/detail/matrix_lines.cuh>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

/// How a tile passes through shared memory. A thread reads `along` neighbours from each of `across`
/// lines of the source, and so holds whole words for both sides; a row of words in shared memory is
/// 32 words of one line of the target.
template <class From, class To>
struct tile_shape {
    using word = std::conditional_t<sizeof(To) == 8, std::uint64_t, std::uint32_t>;

    static constexpr unsigned lanes = 32;
    static constexpr unsigned smaller =
        static_cast<unsigned>(sizeof(From) < sizeof(To) ? sizeof(From) : sizeof(To));
    static constexpr unsigned most_along = static_cast<unsigned>(widest_access / sizeof(From));
    static constexpr unsigned wanted_along = smaller < 4 ? 4 / smaller : 1;
    static constexpr unsigned along = wanted_along < most_along ? wanted_along : most_along;
    static constexpr unsigned across = static_cast<unsigned>(sizeof(word) / sizeof(To));
    static constexpr unsigned positions = lanes * along;  ///< of a line of the source
    static constexpr unsigned source_lines = lanes * across;
};

/// Keeps no copy in the layout of the source.
struct no_copy {};

/// Line `i` of the target is position `i` of all lines of the source. `Copy` may be `matrix_lines`
/// of a second target in the layout of the source.
template <class From, class To, class Element, class Copy = no_copy>
struct tile_cast {
    using shape = tile_shape<From, To>;
    using word = typename shape::word;
    static constexpr unsigned warps = pass_threads / shape::lanes;
    static constexpr bool keeps_copy = !std::is_same_v<Copy, no_copy>;

    matrix_lines<const From> source;
    matrix_lines<To> target;
    std::uint64_t source_lines;
    std::uint64_t positions;
    bool reads_groups;  ///< source, and copy, stand at whole groups of `along` elements
    bool writes_words;  ///< the target stands at whole words
    Element element;
    Copy copy{};

    __host__ __device__ std::uint64_t tiles_along() const {
        return (positions + shape::positions - 1) / shape::positions;
    }
    __host__ __device__ std::uint64_t tiles() const {
        return tiles_along() * ((source_lines + shape::source_lines - 1) / shape::source_lines);
    }

    __device__ void run() const {
        __shared__ word memory[shape::positions * shape::lanes];
        auto worker = element.begin();
        for (std::uint64_t tile = blockIdx.x; tile < tiles(); tile += gridDim.x) {
            const std::uint64_t row = tile / tiles_along();
            const std::uint64_t line = row * shape::source_lines;
            const std::uint64_t position = (tile - row * tiles_along()) * shape::positions;
            __syncthreads();
            for (unsigned i = threadIdx.x / shape::lanes; i < shape::lanes; i += warps) {
                read_words(worker, memory, line, position, i);
            }
            __syncthreads();
            for (unsigned i = threadIdx.x / shape::lanes; i < shape::positions; i += warps) {
                write_line(memory, line, position, i);
            }
        }
        worker.end();
    }

private:
    static constexpr unsigned along = shape::along;
    static constexpr unsigned across = shape::across;
    using source_group = element_group<From, along>;
    using word_elements = element_group<To, across>;

    /// The place of word `column` of row `row`: another bank for each of the words that a warp
    /// writes at once, which is one of every `along` rows, and for those that it reads at once.
    __device__ static unsigned place_of(unsigned row, unsigned column, bool in_groups) {
        const unsigned turn = in_groups ? row / along : row % shape::lanes;
        return row * shape::lanes + (column ^ turn);
    }

    /// The place in a tile of what a lane reads as its element `i`.
    __device__ unsigned position_of(unsigned lane, unsigned i) const {
        return reads_groups ? lane * along + i : lane + i * shape::lanes;
    }

    __device__ source_group read_group(std::uint64_t line, std::uint64_t position) const {
        const unsigned lane = threadIdx.x % shape::lanes;
        source_group group{};
        if (line >= source_lines) return group;
        if (reads_groups && position + (lane + 1) * along <= positions) {
            return *reinterpret_cast<const source_group*>(source.at(line, position + lane * along));
        }
#pragma unroll
        for (unsigned i = 0; i < along; ++i) {
            const std::uint64_t at = position + position_of(lane, i);
            if (at < positions) group.values[i] = *source.at(line, at);
        }
        return group;
    }

    __device__ void keep_copy(const To (&values)[along], std::uint64_t line,
                              std::uint64_t position) const {
        const unsigned lane = threadIdx.x % shape::lanes;
        if (line >= source_lines) return;
        if (reads_groups && position + (lane + 1) * along <= positions) {
            element_group<To, along> group;
#pragma unroll
            for (unsigned i = 0; i < along; ++i) group.values[i] = values[i];
            *reinterpret_cast<element_group<To, along>*>(copy.at(line, position + lane * along)) =
                group;
            return;
        }
#pragma unroll
        for (unsigned i = 0; i < along; ++i) {
            const std::uint64_t at = position + position_of(lane, i);
            if (at < positions) *copy.at(line, at) = values[i];
        }
    }

    /// Converts `along` elements of `across` lines, and stores them as words of `along` lines of
    /// the target.
    template <class Worker>
    __device__ void read_words(Worker& worker, word* memory, std::uint64_t line,
                               std::uint64_t position, unsigned column) const {
        const unsigned lane = threadIdx.x % shape::lanes;
        source_group read[across];
#pragma unroll
        for (unsigned j = 0; j < across; ++j) {
            read[j] = read_group(line + column * across + j, position);
        }
        To values[across][along];
#pragma unroll
        for (unsigned j = 0; j < across; ++j) {
            const std::uint64_t from_line = line + column * across + j;
#pragma unroll
            for (unsigned i = 0; i < along; ++i) {
                const std::uint64_t at = position + position_of(lane, i);
                if (from_line < source_lines && at < positions) {
                    values[j][i] = worker(read[j].values[i], at * source_lines + from_line);
                } else {
                    values[j][i] = To{};
                }
            }
            if constexpr (keeps_copy) keep_copy(values[j], from_line, position);
        }
#pragma unroll
        for (unsigned i = 0; i < along; ++i) {
            word_elements elements;
#pragma unroll
            for (unsigned j = 0; j < across; ++j) elements.values[j] = values[j][i];
            const unsigned row = position_of(lane, i);
            memory[place_of(row, column, reads_groups)] = __builtin_bit_cast(word, elements);
        }
    }

    /// Writes one row of words to its line of the target.
    __device__ void write_line(const word* memory, std::uint64_t line, std::uint64_t position,
                               unsigned row) const {
        if (position + row >= positions) return;
        const unsigned lane = threadIdx.x % shape::lanes;
        To* const to = target.at(position + row, line);
        const std::uint64_t room = source_lines - line;
        if (writes_words && (lane + 1) * across <= room) {
            *reinterpret_cast<word*>(to + lane * across) =
                memory[place_of(row, lane, reads_groups)];
            return;
        }
        if (writes_words) {
            write_elements(memory, to, row, lane * across, 1, room);
        } else {
            write_elements(memory, to, row, lane, shape::lanes, room);
        }
    }

    __device__ void write_elements(const word* memory, To* to, unsigned row, unsigned first,
                                   unsigned stride, std::uint64_t room) const {
#pragma unroll
        for (unsigned j = 0; j < across; ++j) {
            const unsigned at = first + j * stride;
            const auto elements =
                __builtin_bit_cast(word_elements, memory[place_of(row, at / across, reads_groups)]);
            if (at < room) to[at] = elements.values[at % across];
        }
    }
};

}  // namespace demi::inline DEMI_ABI::detail
