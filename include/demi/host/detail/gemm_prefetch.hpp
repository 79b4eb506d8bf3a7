// SPDX-License-Identifier: MIT
/// What a GEMM will pack next, asked for in pieces while it multiplies.
#pragma once

#include <demi/host/detail/gemm_panels.hpp>
#include <demi/host/detail/gemm_tile.hpp>

#include <algorithm>
#include <cstddef>

namespace demi::inline DEMI_ABI {
namespace detail {

/// A rectangle of memory: rows of bytes that lie `stride` apart.
struct memory_rectangle {
    const char* from = nullptr;
    std::size_t rows = 0;
    std::size_t stride = 0;
    std::size_t bytes = 0;  ///< of a row
};

/// Some lines of an operand for some of their elements.
template <class T>
memory_rectangle rectangle_of(const gemm_operand<T>& operand, std::size_t line, std::size_t lines,
                              std::size_t element, std::size_t elements) {
    const T* const from =
        operand.data + line * operand.line_stride + element * operand.depth_stride;
    const bool adjacent = operand.line_stride == 1;
    return {reinterpret_cast<const char*>(from), adjacent ? elements : lines,
            (adjacent ? operand.depth_stride : operand.line_stride) * sizeof(T),
            (adjacent ? lines : elements) * sizeof(T)};
}

/// Deals a rectangle out to the tiles that are computed before it is needed. It may ask for a
/// little more than that, which does no harm.
class prefetch_schedule {
public:
    prefetch_schedule(const memory_rectangle& what, std::size_t tiles, std::size_t depth)
        : what_(what),
          piece_bytes_(divide_up(depth, tile_prefetch::steps) * tile_prefetch::cache_line_bytes) {
        if (what.rows == 0 || tiles == 0 || depth == 0) return;
        const std::size_t pieces = what.rows * divide_up(what.bytes, piece_bytes_);
        per_tile_ = std::min(divide_up(pieces, tiles), most_per_tile);
        left_ = pieces;
    }

    tile_prefetch next() {
        if (left_ == 0) return {};
        const std::size_t count = std::min(per_tile_, left_);
        const char* const from =
            what_.from + next_ % what_.rows * what_.stride + next_ / what_.rows * piece_bytes_;
        next_ += count;
        left_ -= count;
        return {from, count, what_.stride};
    }

private:
    static constexpr std::size_t most_per_tile = 14;

    memory_rectangle what_;
    std::size_t piece_bytes_;
    std::size_t per_tile_ = 0;
    std::size_t next_ = 0;
    std::size_t left_ = 0;
};

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
