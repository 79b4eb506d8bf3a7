// SPDX-License-Identifier: MIT
/// How the operands of a GEMM lie in memory, given and packed.
#pragma once

#include <demi/core/config.hpp>

#include <cstddef>

namespace demi::inline DEMI_ABI {
namespace detail {

constexpr std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }
constexpr std::size_t round_up(std::size_t a, std::size_t b) { return divide_up(a, b) * b; }

/// How lines are packed: panels of `width` lines (the last may have fewer), each of which holds
/// the values of all its lines for one step of the sums after the other, `width` apart.
/// A gap behind each panel takes what whole vectors write beyond its last step.
struct panel_shape {
    std::size_t lines;
    std::size_t depth;
    std::size_t width;

    std::size_t count() const { return divide_up(lines, width); }
    std::size_t stride() const { return depth * width + 16; }
    std::size_t size() const { return count() * stride(); }
    std::size_t lines_of(std::size_t panel) const {
        const std::size_t rest = lines - panel * width;
        return rest < width ? rest : width;
    }
};

/// Rows of an operand for some steps of the sums, as tiles read them.
struct gemm_rows {
    const char* data;
    std::size_t row;   ///< bytes from one row to the next
    std::size_t step;  ///< bytes from one step to the next
};

/// Columns of an operand for some steps of the sums, in panels.
struct gemm_columns {
    panel_shape shape;
    float* own;                  ///< panels in the worker's memory
    const float* packed;         ///< panels, `own` or the caller's
    const float* raw = nullptr;  ///< the columns where they are given
    std::size_t raw_step = 0;
    std::size_t raw_columns = 0;  ///< how many of them are not packed
    bool keeps_raw = false;       ///< or else the first tile packs them

    bool is_raw(std::size_t panel) const { return panel * shape.width < raw_columns; }
};

/// All lines of an operand, packed: panels for `block_depth` steps of the sums after the other.
struct packed_panels {
    const float* data;
    std::size_t lines;
    std::size_t width;
    std::size_t block_depth;

    panel_shape shape(std::size_t steps) const { return {lines, steps, width}; }

    /// The panels of the block of `steps` steps from `depth` on, from the one of `line` on.
    const float* at(std::size_t line, std::size_t depth, std::size_t steps) const {
        return data + depth / block_depth * shape(block_depth).size() +
               line / width * shape(steps).stride();
    }
};

/// One operand of a GEMM as a set of lines, the rows of `a` or the columns of `b`, along which the
/// sums run. Element k of line i is `data[i * line_stride + k * depth_stride]`; one stride is 1.
template <class T>
struct gemm_operand {
    const T* data;
    std::size_t lines;
    std::size_t length;  ///< of a line
    std::size_t line_stride;
    std::size_t depth_stride;
    const packed_panels* packed = nullptr;  ///< to be used instead
};

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
