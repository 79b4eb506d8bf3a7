// SPDX-License-Identifier: MIT
/// Packing for GEMM: an operand is converted to float and laid out as the tiles read it.
#pragma once

#include <demi/host/block_convert.hpp>
#include <demi/host/detail/gemm_pack_adjacent.hpp>
#include <demi/host/detail/gemm_panels.hpp>
#include <demi/host/detail/gemm_tile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {
namespace detail {

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

/// Packs up to a vector of lines of words whose elements are adjacent along the depth. Every step
/// writes a whole vector, repeating the first line; what goes beyond `pitch` is overwritten later.
/// A word that is not whole is filled up with zero.
struct pack_across {
    const char* from;
    std::size_t line_stride;  ///< in bytes
    std::size_t lines;
    std::size_t bytes;  ///< of a line
    float* to;
    std::size_t pitch;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        constexpr std::size_t side = tile_shape<Isa>::lanes;
        const std::size_t whole = bytes / sizeof(float);
        std::size_t k = 0;
        for (; k + side <= whole; k += side) {
            pack_square<side>(from + k * sizeof(float), line_stride, side, to + k * pitch);
        }
        const std::size_t left = bytes - k * sizeof(float);
        if (left == 0) return;
        float rest[side * side] = {};
        for (std::size_t i = 0; i < lines; ++i) {
            std::memcpy(rest + i * side, from + i * line_stride + k * sizeof(float), left);
        }
        pack_square<side>(reinterpret_cast<const char*>(rest), side * sizeof(float),
                          divide_up(left, sizeof(float)), to + k * pitch);
    }

private:
    template <std::size_t Side>
    DEMI_HOST_KERNEL void pack_square(const char* square, std::size_t stride, std::size_t steps,
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

/// Steps of lines that are converted before they are packed across.
inline constexpr std::size_t converted_steps = 256;

/// Words of scratch memory that `pack_panels` needs.
template <host_isa Isa>
std::size_t pack_scratch_size(std::size_t lines) {
    return std::max(lines, converted_steps * tile_shape<Isa>::lanes);
}

/// `pack_panels` for lines that are adjacent in themselves: a vector of lines at a time.
template <host_isa Isa, class T>
void pack_separate_lines(const T* from, std::size_t line_stride, std::size_t length,
                         const panel_shape& shape, float* to, float* scratch) {
    constexpr std::size_t lanes = tile_shape<Isa>::lanes;
    constexpr bool in_place = packs_pairs<Isa> || std::is_same_v<T, float>;
    const std::size_t elements = std::min(shape.depth * elements_per_step<Isa>, length);
    for (std::size_t panel = 0; panel < shape.count(); ++panel) {
        const std::size_t width = shape.lines_of(panel);
        for (std::size_t i = 0; i < width; i += lanes) {
            const std::size_t count = std::min(lanes, width - i);
            const T* const first = from + (panel * shape.width + i) * line_stride;
            float* const target = to + panel * shape.stride() + i;
            if constexpr (in_place) {
                run_for<Isa>(pack_across{reinterpret_cast<const char*>(first),
                                         line_stride * sizeof(T), count, elements * sizeof(T),
                                         target, shape.width});
            } else {
                for (std::size_t k = 0; k < elements; k += converted_steps) {
                    const std::size_t steps = std::min(converted_steps, elements - k);
                    for (std::size_t line = 0; line < count; ++line) {
                        convert_block(Isa, first + line * line_stride + k, scratch + line * steps,
                                      steps, nearest_even{});
                    }
                    const std::size_t bytes = steps * sizeof(float);
                    run_for<Isa>(pack_across{reinterpret_cast<const char*>(scratch), bytes, count,
                                             bytes, target + k * shape.width, shape.width});
                }
            }
        }
    }
}

/// Words from one line to the next when lines are copied: never in step with the cache's sets.
inline std::size_t copied_line_stride(std::size_t depth) {
    constexpr std::size_t floats = 64 / sizeof(float);
    return (divide_up(depth, floats) | 1) * floats;
}

/// Copies lines that are adjacent in themselves, converted.
template <host_isa Isa, class T>
void copy_lines(const T* from, std::size_t line_stride, std::size_t length, std::size_t lines,
                std::size_t depth, float* to) {
    const std::size_t elements = std::min(depth * elements_per_step<Isa>, length);
    const std::size_t stride = copied_line_stride(depth);
    for (std::size_t i = 0; i < lines; ++i) {
        float* const line = to + i * stride;
        if constexpr (packs_pairs<Isa>) {
            line[depth - 1] = 0;
            std::memcpy(static_cast<void*>(line), from + i * line_stride, elements * sizeof(T));
        } else {
            convert_block(Isa, from + i * line_stride, line, elements, nearest_even{});
        }
    }
}

/// Packs the lines from `line` on, for the sums from step `depth` on. What fills up the last panel
/// has no meaning.
template <host_isa Isa, class T>
void pack_panels(const gemm_operand<T>& source, std::size_t line, std::size_t depth,
                 const panel_shape& shape, float* to, float* scratch) {
    if (shape.depth == 0) return;
    const std::size_t element = depth * elements_per_step<Isa>;
    const std::size_t length = source.length - element;
    const T* from = source.data + line * source.line_stride + element * source.depth_stride;
    if (source.line_stride == 1) {
        pack_adjacent_lines<Isa>(from, source.depth_stride, length, source.lines - line, shape, to,
                                 scratch);
    } else {
        pack_separate_lines<Isa>(from, source.line_stride, length, shape, to, scratch);
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
