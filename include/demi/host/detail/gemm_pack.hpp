// SPDX-License-Identifier: MIT
/// Packing for GEMM: an operand is converted to float and laid out as the tiles read it.
#pragma once

#include <demi/host/block_convert.hpp>
#include <demi/host/detail/gemm_tile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {
namespace detail {

/// One operand of a GEMM as a set of lines, the rows of `a` or the columns of `b`, along which the
/// sums run. Element k of line i is `data[i * line_stride + k * depth_stride]`; one stride is 1.
template <class T>
struct gemm_operand {
    const T* data;
    std::size_t line_stride;
    std::size_t depth_stride;
};

/// How lines are packed: panels of `width` lines (the last may have fewer), each of which holds
/// the values of all its lines for one step of the sums after the other, `pitch` apart.
/// A gap behind each panel takes what whole vectors write beyond its last step.
struct panel_shape {
    std::size_t lines;
    std::size_t depth;
    std::size_t width;
    std::size_t pitch;

    std::size_t count() const { return (lines + width - 1) / width; }
    std::size_t stride() const { return depth * pitch + 16; }
    std::size_t lines_of(std::size_t panel) const {
        const std::size_t rest = lines - panel * width;
        return rest < width ? rest : width;
    }
};

template <std::size_t Step, class Vector, std::size_t... Lane>
DEMI_HOST_KERNEL void exchange_blocks(Vector& a, Vector& b, std::index_sequence<Lane...>) {
    constexpr std::size_t count = sizeof...(Lane);
    const Vector low =
        __builtin_shufflevector(a, b, ((Lane & Step) == 0 ? Lane : count + Lane - Step)...);
    const Vector high =
        __builtin_shufflevector(a, b, ((Lane & Step) == 0 ? Lane + Step : count + Lane)...);
    a = low;
    b = high;
}

/// Transposes a square of registers by exchanging off-diagonal blocks of 1, 2, 4, ... elements.
template <std::size_t Step, class Vector, std::size_t Count>
DEMI_HOST_KERNEL void transpose_registers(Vector (&rows)[Count]) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < Count; ++i) {
        if ((i & Step) == 0) {
            exchange_blocks<Step>(rows[i], rows[i + Step], std::make_index_sequence<Count>{});
        }
    }
    if constexpr (2 * Step < Count) transpose_registers<2 * Step>(rows);
}

/// Packs up to a vector of lines of floats whose elements are adjacent along the depth. Every step
/// writes a whole vector, repeating the first line; what goes beyond `pitch` is overwritten later.
struct pack_across {
    const float* from;
    std::size_t line_stride;
    std::size_t lines;
    std::size_t depth;
    float* to;
    std::size_t pitch;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        constexpr std::size_t side = tile_shape<Isa>::lanes;
        std::size_t k = 0;
        for (; k + side <= depth; k += side) {
            pack_square<side>(from + k, line_stride, side, to + k * pitch);
        }
        if (k == depth) return;
        float rest[side * side] = {};
        for (std::size_t i = 0; i < lines; ++i) {
            std::memcpy(rest + i * side, from + i * line_stride + k, (depth - k) * sizeof(float));
        }
        pack_square<side>(rest, side, depth - k, to + k * pitch);
    }

private:
    template <std::size_t Side>
    DEMI_HOST_KERNEL void pack_square(const float* square, std::size_t stride, std::size_t steps,
                                      float* target) const {
        using stored = stored_float_vector<Side>;
        float_vector<Side> rows[Side];
#pragma GCC unroll 16
        for (std::size_t i = 0; i < Side; ++i) {
            const std::size_t line = i < lines ? i : 0;
            rows[i] = *reinterpret_cast<const stored*>(square + line * stride);
        }
        transpose_registers<1>(rows);
#pragma GCC unroll 16
        for (std::size_t k = 0; k < Side; ++k) {
            if (k < steps) *reinterpret_cast<stored*>(target + k * pitch) = rows[k];
        }
    }
};

/// Deals one step of the sums, given as adjacent floats, out to the panels. Reads and writes whole
/// vectors: what goes beyond a panel's step is overwritten by the next one.
struct pack_along {
    const float* from;
    const panel_shape& shape;
    float* to;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        constexpr std::size_t lanes = tile_shape<Isa>::lanes;
        using stored = stored_float_vector<lanes>;
        float* panel = to;
        for (std::size_t line = 0; line < shape.lines; line += shape.width) {
            for (std::size_t i = 0; i < shape.width; i += lanes) {
                *reinterpret_cast<stored*>(panel + i) =
                    *reinterpret_cast<const stored*>(from + line + i);
            }
            panel += shape.stride();
        }
    }
};

/// Floats of scratch memory that `pack_panels` needs.
template <host_isa Isa>
std::size_t pack_scratch_size(const panel_shape& shape) {
    const std::size_t along = shape.count() * shape.width + tile_shape<Isa>::lanes;
    const std::size_t across = shape.depth * tile_shape<Isa>::lanes;
    return along > across ? along : across;
}

/// How far ahead of packing memory is asked for what the processor cannot foresee.
inline constexpr std::size_t prefetch_steps = 6;

template <class T>
void prefetch_lines(const T* from, std::size_t count) {
    constexpr std::size_t cache_line = 64 / sizeof(T);
    for (std::size_t i = 0; i < count; i += cache_line) __builtin_prefetch(from + i);
}

/// `pack_panels` for lines that lie beside each other: step by step of the sums.
template <host_isa Isa, class T>
void pack_adjacent_lines(const T* from, std::size_t depth_stride, const panel_shape& shape,
                         float* to, float* scratch) {
    float* const end = scratch + shape.count() * shape.width + tile_shape<Isa>::lanes;
    std::fill(scratch + shape.lines, end, 0.0f);
    for (std::size_t k = 0; k < shape.depth; ++k) {
        if (k + prefetch_steps < shape.depth) {
            prefetch_lines(from + (k + prefetch_steps) * depth_stride, shape.lines);
        }
        convert_block(Isa, from + k * depth_stride, scratch, shape.lines, nearest_even{});
        run_on(Isa, pack_along{scratch, shape, to + k * shape.pitch});
    }
}

/// `pack_panels` for lines that are adjacent in themselves: a vector of lines at a time.
template <host_isa Isa, class T>
void pack_separate_lines(const T* from, std::size_t line_stride, const panel_shape& shape,
                         float* to, float* scratch) {
    constexpr std::size_t lanes = tile_shape<Isa>::lanes;
    for (std::size_t panel = 0; panel < shape.count(); ++panel) {
        const std::size_t width = shape.lines_of(panel);
        for (std::size_t i = 0; i < width; i += lanes) {
            const std::size_t count = std::min(lanes, width - i);
            const T* first = from + (panel * shape.width + i) * line_stride;
            float* target = to + panel * shape.stride() + i;
            if constexpr (std::is_same_v<T, float>) {
                run_on(Isa,
                       pack_across{first, line_stride, count, shape.depth, target, shape.pitch});
            } else {
                for (std::size_t line = 0; line < count; ++line) {
                    convert_block(Isa, first + line * line_stride, scratch + line * shape.depth,
                                  shape.depth, nearest_even{});
                }
                run_on(Isa,
                       pack_across{scratch, shape.depth, count, shape.depth, target, shape.pitch});
            }
        }
    }
}

/// Packs the lines from `line` on, for the sums from `depth` on. What fills up the last panel has
/// no meaning.
template <host_isa Isa, class T>
void pack_panels(const gemm_operand<T>& source, std::size_t line, std::size_t depth,
                 const panel_shape& shape, float* to, float* scratch) {
    if (shape.depth == 0) return;
    const T* from = source.data + line * source.line_stride + depth * source.depth_stride;
    if (source.line_stride == 1) {
        pack_adjacent_lines<Isa>(from, source.depth_stride, shape, to, scratch);
    } else {
        pack_separate_lines<Isa>(from, source.line_stride, shape, to, scratch);
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
