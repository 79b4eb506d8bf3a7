// SPDX-License-Identifier: MIT
/// Packing for GEMM of lines that lie beside each other: step by step of the sums.
#pragma once

#include <demi/core/rounding.hpp>
#include <demi/host/block_convert.hpp>
#include <demi/host/detail/gemm_panels.hpp>
#include <demi/host/detail/gemm_tile.hpp>
#include <demi/host/detail/pack_memory.hpp>
#include <demi/host/detail/word_lanes.hpp>
#include <demi/precision/convert.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace demi::inline DEMI_ABI {
namespace detail {

/// Elements of a line that make up one step of the sums.
template <host_isa Isa>
inline constexpr std::size_t elements_per_step = packs_pairs<Isa> ? 2 : 1;

template <class T>
void prefetch_lines(const T* from, std::size_t count) {
    constexpr std::size_t step = 64 / sizeof(T);
    for (std::size_t i = 0; i < count; i += step) __builtin_prefetch(from + i);
}

/// Deals the elements of some steps out to the panels, converted to float, or joined to words of
/// two steps. Writes whole vectors: what goes beyond a panel's step is overwritten by the next one.
template <class T, bool Pairs>
struct pack_adjacent {
    const T* from;
    std::size_t depth_stride;
    std::size_t length;    ///< elements left of each line
    std::size_t readable;  ///< lines that exist from the first on
    const panel_shape& shape;
    std::size_t steps;
    float* to;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        constexpr std::size_t lanes = tile_shape<Isa>::lanes;
        constexpr std::size_t elements = Pairs ? 2 : 1;
        for (std::size_t k = 0; k < steps; ++k) {
            for (std::size_t i = 0; i < elements; ++i) {
                const std::size_t ahead = (k + distance) * elements + i;
                if (ahead < length) prefetch_lines(from + ahead * depth_stride, shape.lines);
            }
            const T* const first = from + k * elements * depth_stride;
            const T* const second = 2 * k + 1 < length ? first + depth_stride : nullptr;
            float* panel = to + k * shape.width;
            for (std::size_t line = 0; line < shape.lines; line += shape.width) {
                const std::size_t end = std::min(line + shape.width, shape.lines);
                for (std::size_t i = line; i < end; i += lanes) {
                    if (i + lanes <= readable) {
                        pack_vector<static_cast<int>(lanes)>(first, second, i, panel + (i - line));
                    } else {
                        pack_elements(first, second, i, std::min(i + lanes, end),
                                      panel + (i - line));
                    }
                }
                panel += shape.stride();
            }
        }
    }

private:
    /// How far ahead memory is asked for that the processor cannot foresee.
    static constexpr std::size_t distance = 8;

    template <int Count>
    DEMI_HOST_KERNEL static void pack_vector(const T* first, const T* second, std::size_t line,
                                             float* target) {
        if constexpr (Pairs) {
            using word = word_lanes<Count>;
            word both = word::load_halves(first + line);
            if (second != nullptr) both = both | (word::load_halves(second + line) << 16);
            both.store(target);
        } else {
            pack_memory<lanes<Count>, T, nearest_even>::load(first + line).store(target);
        }
    }

    DEMI_HOST_KERNEL static void pack_elements(const T* first, const T* second, std::size_t line,
                                               std::size_t end, float* target) {
        for (; line < end; ++line, ++target) {
            if constexpr (Pairs) {
                std::uint16_t halves[2] = {};
                std::memcpy(&halves[0], first + line, 2);
                if (second != nullptr) std::memcpy(&halves[1], second + line, 2);
                std::memcpy(target, halves, sizeof halves);
            } else {
                *target = convert<float>(first[line]);
            }
        }
    }
};

/// Packs lines that lie beside each other. `length` elements of each line are left and `readable`
/// lines exist from the first on; `scratch` is for formats that only blocks can be converted of.
template <host_isa Isa, class T>
void pack_adjacent_lines(const T* from, std::size_t depth_stride, std::size_t length,
                         std::size_t readable, const panel_shape& shape, float* to,
                         float* scratch) {
    using memory = pack_memory<lanes<lane_count<Isa>>, T, nearest_even>;
    if constexpr (packs_pairs<Isa>) {
        run_for<Isa>(
            pack_adjacent<T, true>{from, depth_stride, length, readable, shape, shape.depth, to});
    } else if constexpr (memory::direct) {
        run_for<Isa>(
            pack_adjacent<T, false>{from, depth_stride, length, readable, shape, shape.depth, to});
    } else {
        for (std::size_t k = 0; k < shape.depth; ++k) {
            convert_block(Isa, from + k * depth_stride, scratch, shape.lines, nearest_even{});
            run_for<Isa>(pack_adjacent<float, false>{scratch, 0, 1, shape.lines, shape, 1,
                                                     to + k * shape.width});
        }
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
