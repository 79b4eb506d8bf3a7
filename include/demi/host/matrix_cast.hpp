// SPDX-License-Identifier: MIT
/// Conversion of matrices of any layout, transposing where the layouts differ.
#pragma once

#include <demi/core/matrix_view.hpp>
#include <demi/host/detail/operand_window.hpp>
#include <demi/host/detail/partition.hpp>
#include <demi/host/detail/stream.hpp>
#include <demi/host/detail/transpose_tile.hpp>
#include <demi/host/host_context.hpp>

#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI {
namespace detail {

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
        const std::size_t columns = parts(length_, piece_length());
        const std::size_t pieces = parts(lines_, piece_lines()) * columns;
        const auto convert_pieces = [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                convert_piece(i / columns * piece_lines(), i % columns * piece_length());
            }
            if (streams_) finish_stream();
        };
        const bool splits =
            context_.executor->concurrency > 1 && lines_ * length_ > parallel_threshold;
        if (splits) {
            run_split(context_, pieces, convert_pieces);
        } else {
            convert_pieces(0, pieces);
        }
    }

private:
    /// Tiles of both formats fit into the first-level cache together.
    static constexpr std::size_t tile = 64;

    /// Short pieces of lines are streamed only if they are whole cache lines.
    bool has_aligned_lines() const {
        return reinterpret_cast<std::uintptr_t>(target_.first) % cache_line_bytes == 0 &&
               target_.pitch * sizeof(To) % cache_line_bytes == 0;
    }

    static std::size_t parts(std::size_t size, std::size_t part) {
        return size / part + (size % part != 0 ? 1 : 0);
    }
    static std::size_t lesser(std::size_t a, std::size_t b) { return a < b ? a : b; }

    std::size_t piece_lines() const { return transposes_ ? tile : 1; }
    std::size_t piece_length() const { return transposes_ ? tile : chunk_elements; }

    void convert_piece(std::size_t line, std::size_t position) const {
        const std::size_t lines = lesser(lines_ - line, piece_lines());
        const std::size_t length = lesser(length_ - position, piece_length());
        if (!transposes_) {
            return convert_line(source_.at(line, position), line, position, length);
        }
        alignas(cache_line_bytes) std::byte bytes[tile * tile * sizeof(From)];
        const tile_rows<From> turned{reinterpret_cast<From*>(bytes), tile};
        const tile_rows<const From> across{source_.at(position, line), source_.pitch};
        transpose_tile(across, turned, length, lines);
        for (std::size_t i = 0; i < lines; ++i) {
            convert_line(turned.at(i, 0), line + i, position, length);
        }
    }

    void convert_line(const From* from, std::size_t line, std::size_t position,
                      std::size_t count) const {
        const auto rounding = block_rounding_for(rounding_, 0, line * length_ + position);
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
/// number of threads. One pass; returns when it is done.
template <class From, class To, class Rounding>
void host_cast_matrix(const host_context& context, const matrix_view<const From>& from,
                      const matrix_view<To>& to, Rounding rounding,
                      std::size_t most_cached = stream_threshold) {
    if (to.empty()) return;
    matrix_conversion<From, To, Rounding>(context, from, to, rounding, most_cached).run();
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
