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

    /// Times that a thread reads before it waits: up to 64 bytes, so that registers last.
    static constexpr unsigned bytes_at_once = static_cast<unsigned>(along * across * sizeof(From));
    static constexpr unsigned reads_in_flight = bytes_at_once > 32 ? 1 : bytes_at_once > 16 ? 2 : 4;
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

    /// Tiles along the lines of the source.
    __host__ __device__ std::uint64_t columns() const {
        return (positions + shape::positions - 1) / shape::positions;
    }
    /// Tiles across them.
    __host__ __device__ std::uint64_t rows() const {
        return (source_lines + shape::source_lines - 1) / shape::source_lines;
    }

    __device__ void run() const {
        __shared__ word memory[shape::positions * shape::lanes];
        auto worker = element.begin();
        for (std::uint64_t row = blockIdx.y; row < rows(); row += gridDim.y) {
            for (std::uint64_t column = blockIdx.x; column < columns(); column += gridDim.x) {
                const corner at{row * shape::source_lines, column * shape::positions};
                const bool whole = reads_groups && writes_words &&
                                   at.line + shape::source_lines <= source_lines &&
                                   at.position + shape::positions <= positions;
                if (whole) {
                    convert_tile<true>(worker, memory, at);
                } else {
                    convert_tile<false>(worker, memory, at);
                }
            }
        }
        worker.end();
    }

private:
    static constexpr unsigned along = shape::along;
    static constexpr unsigned across = shape::across;
    using source_group = element_group<From, along>;
    using target_group = element_group<To, along>;
    using word_elements = element_group<To, across>;

    /// The first line and position of a tile.
    struct corner {
        std::uint64_t line;
        std::uint64_t position;
    };

    /// `Whole`: nothing of the tile lies beyond the matrix, and all accesses are wide.
    template <bool Whole, class Worker>
    __device__ void convert_tile(Worker& worker, word* memory, const corner& at) const {
        const unsigned warp = threadIdx.x / shape::lanes;
        __syncthreads();
#pragma unroll Whole ? shape::reads_in_flight : 1
        for (unsigned i = 0; i < shape::lanes; i += warps) {
            read_words<Whole>(worker, memory, at, i + warp);
        }
        __syncthreads();
#pragma unroll Whole ? 4 : 1
        for (unsigned i = 0; i < shape::positions; i += warps) {
            write_line<Whole>(memory, at, i + warp);
        }
    }

    /// The place of word `column` of row `row`: another bank for each of the words that a warp
    /// writes at once, which is one of every `along` rows, and for those that it reads at once.
    template <bool Whole>
    __device__ unsigned place_of(unsigned row, unsigned column) const {
        const unsigned turn = Whole || reads_groups ? row / along : row % shape::lanes;
        return row * shape::lanes + (column ^ turn);
    }

    /// The place in a tile of what a lane reads as its element `i`.
    template <bool Whole>
    __device__ unsigned position_of(unsigned i) const {
        const unsigned lane = threadIdx.x % shape::lanes;
        return Whole || reads_groups ? lane * along + i : lane + i * shape::lanes;
    }

    /// Whether all that a lane reads of a line can be had in one access.
    template <bool Whole>
    __device__ bool takes_group(const corner& at) const {
        return Whole || (reads_groups && at.position + position_of<Whole>(along) <= positions);
    }

    template <bool Whole>
    __device__ source_group read_group(const corner& at, std::uint64_t line) const {
        source_group group{};
        if (!Whole && line >= source_lines) return group;
        if (takes_group<Whole>(at)) {
            return load_group<source_group>(source.at(line, at.position + position_of<Whole>(0)));
        }
#pragma unroll
        for (unsigned i = 0; i < along; ++i) {
            const std::uint64_t position = at.position + position_of<Whole>(i);
            if (position < positions) group.values[i] = *source.at(line, position);
        }
        return group;
    }

    template <bool Whole>
    __device__ void keep_copy(const target_group& group, const corner& at,
                              std::uint64_t line) const {
        if (!Whole && line >= source_lines) return;
        if (takes_group<Whole>(at)) {
            return store_group(copy.at(line, at.position + position_of<Whole>(0)), group);
        }
#pragma unroll
        for (unsigned i = 0; i < along; ++i) {
            const std::uint64_t position = at.position + position_of<Whole>(i);
            if (position < positions) *copy.at(line, position) = group.values[i];
        }
    }

    /// Converts `along` elements of `across` lines, and stores them as words of `along` lines of
    /// the target.
    template <bool Whole, class Worker>
    __device__ void read_words(Worker& worker, word* memory, const corner& at,
                               unsigned column) const {
        const std::uint64_t first_line = at.line + column * across;
        source_group read[across];
#pragma unroll
        for (unsigned j = 0; j < across; ++j) read[j] = read_group<Whole>(at, first_line + j);
        target_group values[across];
#pragma unroll
        for (unsigned j = 0; j < across; ++j) {
            const std::uint64_t line = first_line + j;
#pragma unroll
            for (unsigned i = 0; i < along; ++i) {
                const std::uint64_t position = at.position + position_of<Whole>(i);
                const bool inside = Whole || (line < source_lines && position < positions);
                values[j].values[i] =
                    inside ? worker(read[j].values[i], position * source_lines + line) : To{};
            }
            if constexpr (keeps_copy) keep_copy<Whole>(values[j], at, line);
        }
#pragma unroll
        for (unsigned i = 0; i < along; ++i) {
            word_elements elements;
#pragma unroll
            for (unsigned j = 0; j < across; ++j) elements.values[j] = values[j].values[i];
            memory[place_of<Whole>(position_of<Whole>(i), column)] =
                __builtin_bit_cast(word, elements);
        }
    }

    /// Writes one row of words to its line of the target.
    template <bool Whole>
    __device__ void write_line(const word* memory, const corner& at, unsigned row) const {
        const unsigned lane = threadIdx.x % shape::lanes;
        if (!Whole && at.position + row >= positions) return;
        To* const to = target.at(at.position + row, at.line);
        const std::uint64_t room = source_lines - at.line;
        if (Whole || (writes_words && (lane + 1) * across <= room)) {
            store_group(to + lane * across, memory[place_of<Whole>(row, lane)]);
        } else if (writes_words) {
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
            const word elements = memory[place_of<false>(row, at / across)];
            const unsigned shift = at % across * 8 * sizeof(To);
            if (at < room) to[at] = from_bits<To>(static_cast<bits_of<To>>(elements >> shift));
        }
    }
};

}  // namespace demi::inline DEMI_ABI::detail
