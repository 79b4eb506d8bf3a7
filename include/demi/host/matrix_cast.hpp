// SPDX-License-Identifier: MIT
/// Conversion of matrices of any layout, transposing where the layouts differ.
#pragma once

#include <demi/core/matrix_view.hpp>
#include <demi/host/detail/operand_window.hpp>
#include <demi/host/detail/partition.hpp>
#include <demi/host/detail/stream.hpp>
#include <demi/host/detail/transpose_tile.hpp>
#include <demi/host/host_buffer.hpp>
#include <demi/host/host_context.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI {
namespace detail {

/// The narrower one of two formats, of which more fits into a cache; the source's where rounding
/// depends on the place in the target.
template <class From, class To, class Rounding>
using turned_format =
    std::conditional_t<(sizeof(To) < sizeof(From)) && !std::same_as<Rounding, stochastic>, To,
                       From>;

/// A conversion seen along the lines of the target: its rows, or its columns if those are
/// contiguous. Where the source has the other layout, its lines run across.
template <class From, class To, class Rounding>
class matrix_conversion {
public:
    matrix_conversion(const host_context& context, const matrix_view<const From>& from,
                      const matrix_view<To>& to, Rounding rounding, std::size_t most_cached)
        : context_(context),
          source_{from.data(), from.leading_dimension()},
          target_{to.data(), to.leading_dimension()},
          lines_(to.order() == layout::row_major ? to.rows() : to.columns()),
          length_(to.order() == layout::row_major ? to.columns() : to.rows()),
          transposes_(from.order() != to.order()),
          streams_(lines_ * length_ * (sizeof(From) + sizeof(To)) > most_cached &&
                   (!transposes_ || has_aligned_lines())),
          rounding_(rounding) {
        // A single line, or lines without padding, make one long line.
        const bool unpadded = target_.pitch == length_ && source_.pitch == length_;
        if (lines_ == 1 && transposes_ && source_.pitch == 1) transposes_ = false;
        if (!transposes_ && (unpadded || lines_ == 1)) {
            length_ *= lines_;
            lines_ = 1;
        }
    }

    void run() const {
        if (!transposes_) {
            run_pieces(1, streams_ ? stream_elements : chunk_elements, [&](const piece& part) {
                convert_line(source_.at(part.line, part.position), part.line, part.position,
                             part.length, rounding_);
            });
        } else if (!streams_) {
            run_pieces(tile, tile, [&](const piece& part) {
                turn<From>({source_.at(part.position, part.line), source_.pitch}, part, [] {});
            });
        } else {
            run_bands();
        }
    }

private:
    using turned = turned_format<From, To, Rounding>;

    /// Elements `position` and following of some lines of the target.
    struct piece {
        std::size_t line, position, lines, length;
    };

    /// Tiles of both formats fit into the first-level cache together.
    static constexpr std::size_t tile = 64;

    /// So many rows of the source, and half of a page of each, wait to be turned in the
    /// second-level cache: longer ways through memory cost less than many short ones.
    static constexpr std::size_t band_length = 256;
    static constexpr std::size_t band_lines = 2048 / sizeof(From);

    /// Short pieces of lines are streamed only if they are whole cache lines.
    bool has_aligned_lines() const {
        return reinterpret_cast<std::uintptr_t>(target_.first) % cache_line_bytes == 0 &&
               target_.pitch * sizeof(To) % cache_line_bytes == 0;
    }

    static std::size_t parts(std::size_t size, std::size_t part) {
        return size / part + (size % part != 0 ? 1 : 0);
    }
    static std::size_t lesser(std::size_t a, std::size_t b) { return a < b ? a : b; }

    /// Calls `work(begin, end)` for ranges of `count` pieces, on several threads if that pays.
    template <class Work>
    void share(std::size_t count, const Work& work) const {
        const auto finish = [&](std::size_t begin, std::size_t end) {
            work(begin, end);
            if (streams_) finish_stream();
        };
        if (context_.executor->concurrency > 1 && lines_ * length_ > parallel_threshold) {
            run_split(context_, count, finish);
        } else {
            finish(0, count);
        }
    }

    piece make_piece(std::size_t line, std::size_t position, std::size_t lines,
                     std::size_t length) const {
        return {line, position, lesser(lines, lines_ - line), lesser(length, length_ - position)};
    }

    template <class Work>
    void run_pieces(std::size_t lines, std::size_t length, const Work& work) const {
        const std::size_t columns = parts(length_, length);
        share(parts(lines_, lines) * columns, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                work(make_piece(i / columns * lines, i % columns * length, lines, length));
            }
        });
    }

    /// Along the rows of the source.
    void run_bands() const {
        const std::size_t rows = parts(lines_, band_lines);
        share(rows * parts(length_, band_length), [&](std::size_t begin, std::size_t end) {
            constexpr std::size_t bytes = band_lines * band_length * sizeof(turned);
            host_buffer<std::byte> memory(bytes, context_.memory);
            const tile_rows<turned> band{reinterpret_cast<turned*>(memory.data()), band_lines};
            for (std::size_t i = begin; i < end; ++i) {
                turn_band(band, make_piece(i % rows * band_lines, i / rows * band_length,
                                           band_lines, band_length));
            }
        });
    }

    void turn_band(const tile_rows<turned>& band, const piece& part) const {
        gather(band, part);
        std::size_t turned_lines = 0;
        const bool has_next = part.length == band_length && part.line + 2 * band_lines <= lines_;
        const auto after_line = [&] {
            if (has_next) prefetch(part, turned_lines);
            ++turned_lines;
        };
        for (std::size_t at = 0; at < part.lines; at += tile) {
            const piece some{part.line + at, part.position, lesser(part.lines - at, tile),
                             part.length};
            turn<turned>({band.at(0, at), band.pitch}, some, after_line);
        }
    }

    /// Reads the rows of the source at several places by turns, as a long block is read.
    void gather(const tile_rows<turned>& band, const piece& part) const {
        constexpr std::size_t places = 8;
        constexpr std::size_t turn_elements = 128;
        const std::size_t rows = part.length / places;
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t at = 0; at < part.lines; at += turn_elements) {
                const std::size_t count = lesser(part.lines - at, turn_elements);
                for (std::size_t place = 0; place < places; ++place) {
                    gather_row(band, part, place * rows + i, at, count);
                }
            }
        }
        for (std::size_t i = places * rows; i < part.length; ++i) {
            gather_row(band, part, i, 0, part.lines);
        }
    }

    void gather_row(const tile_rows<turned>& band, const piece& part, std::size_t row,
                    std::size_t at, std::size_t count) const {
        const From* from = source_.at(part.position + row, part.line + at);
        if constexpr (same_format<turned, From>) {
            convert_block(context_.isa, from, band.at(row, at), count, nearest_even{});
        } else {
            convert_block(context_.isa, from, band.at(row, at), count, rounding_);
        }
    }

    /// While lines are written, memory has time to read the next band into the second-level cache:
    /// as large a part of it as `line` is of this one.
    void prefetch(const piece& part, std::size_t line) const {
        constexpr std::size_t step = cache_line_bytes / sizeof(From);
        constexpr std::size_t share = band_length;
        for (std::size_t i = line * share; i < (line + 1) * share; i += step) {
            __builtin_prefetch(
                source_.at(part.position + i / band_lines, part.line + band_lines + i % band_lines),
                0, 2);
        }
    }

    /// Turns the columns of what lies across into lines, and converts those.
    template <class Number, class AfterLine>
    void turn(const tile_rows<const Number>& across, const piece& part,
              const AfterLine& after_line) const {
        alignas(cache_line_bytes) std::byte bytes[tile * band_length * sizeof(Number)];
        const tile_rows<Number> along{reinterpret_cast<Number*>(bytes), part.length};
        transpose_tile(context_.isa, across, along, part.length, part.lines);
        for (std::size_t i = 0; i < part.lines; ++i) {
            if constexpr (same_format<Number, From>) {
                convert_line(along.at(i, 0), part.line + i, part.position, part.length, rounding_);
            } else {
                convert_line(along.at(i, 0), part.line + i, part.position, part.length,
                             nearest_even{});
            }
            after_line();
        }
    }

    template <class Number, class LineRounding>
    void convert_line(const Number* from, std::size_t line, std::size_t position, std::size_t count,
                      LineRounding line_rounding) const {
        const auto rounding = block_rounding_for(line_rounding, 0, line * length_ + position);
        To* to = target_.at(line, position);
        if (streams_) {
            convert_stream(context_.isa, from, to, count, rounding);
        } else {
            convert_block(context_.isa, from, to, count, rounding);
        }
    }

    const host_context& context_;
    tile_rows<const From> source_;
    tile_rows<To> target_;
    std::size_t lines_, length_;
    bool transposes_, streams_;
    Rounding rounding_;
};

/// Converts every element of `from` into that of `to` at the same row and column, past the caches
/// when the matrices together have more than `most_cached` bytes.
///
/// Random bits are those of the elements of one tensor: the target as it lies in memory, without
/// its padding. Nothing beyond the matrices is read or written; the result does not depend on the
/// number of threads. Throws `out_of_memory` when a large matrix that is transposed gets no
/// workspace from the context. One pass; returns when it is done.
template <class From, class To, class Rounding>
void host_cast_matrix(const host_context& context, const matrix_view<const From>& from,
                      const matrix_view<To>& to, Rounding rounding,
                      std::size_t most_cached = stream_threshold) {
    if (to.empty()) return;
    matrix_conversion<From, To, Rounding>(context, from, to, rounding, most_cached).run();
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
