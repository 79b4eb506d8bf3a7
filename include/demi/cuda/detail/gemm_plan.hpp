// SPDX-License-Identifier: MIT
/// Which tile computes a product, and into how many parts its depth is divided.
#pragma once

#include <demi/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace demi::inline DEMI_ABI::detail {

struct tile_size {
    std::size_t rows;
    std::size_t columns;
    std::size_t depth;
    std::size_t shared_bytes;
    bool copies_beside = false;  ///< operands come without a hand of those that multiply
};

struct gemm_size {
    std::size_t rows;
    std::size_t columns;
    std::size_t depth;
    std::size_t count;  ///< products of a batch
};

/// What a device has, and what may be used.
struct gemm_limits {
    std::size_t multiprocessors;
    std::size_t shared_bytes;   ///< of one block
    std::size_t partial_bytes;  ///< of the sums of all parts of a depth
};

struct gemm_plan {
    std::size_t tile = 0;
    unsigned parts = 1;
    std::size_t part_depth = 0;
};

constexpr std::size_t divided_up(std::size_t value, std::size_t by) {
    return (value + by - 1) / by;
}

/// A rough model of the time a product takes, in multiplications of one multiprocessor: the busiest
/// one computes a whole number of tiles; a tile's edges cost as much as 32 more rows and columns,
/// its beginning and end as much as 256 more values of the depth; parts are written and read again
/// at 48 multiplications a byte, and cost one more launch. Edges that are copied beside the
/// multiplications cost nothing until the second-level cache is busy with those of all tiles: it
/// brings a value to each multiprocessor in the time of some 112 multiplications.
inline double gemm_cost(const gemm_size& size, const tile_size& tile, std::size_t parts,
                        std::size_t multiprocessors) {
    const std::size_t tiles =
        divided_up(size.rows, tile.rows) * divided_up(size.columns, tile.columns) * size.count;
    const auto most = static_cast<double>(divided_up(tiles * parts, multiprocessors));
    const auto area = static_cast<double>(tile.rows * tile.columns);
    const auto edges = static_cast<double>(tile.rows + tile.columns);
    const auto depth = static_cast<double>(divided_up(size.depth, parts) + 256);
    const double each = static_cast<double>(tiles * parts) / static_cast<double>(multiprocessors);
    double cost = tile.copies_beside ? std::max(most * area, each * 112 * edges) * depth
                                     : most * (area + 32 * edges) * depth;
    if (parts > 1) {
        const double bytes = 8.0 * static_cast<double>(parts) * static_cast<double>(size.rows) *
                             static_cast<double>(size.columns) * static_cast<double>(size.count);
        cost += 48 * bytes / static_cast<double>(multiprocessors) + 4.0e6;
    }
    return cost;
}

inline constexpr std::size_t most_depth_parts = 32;
inline constexpr std::size_t least_part_depth = 256;

/// Takes the cheapest of the tiles that fit into shared memory; the last one when none does.
inline gemm_plan plan_gemm(const gemm_size& size, std::span<const tile_size> tiles,
                           const gemm_limits& limits) {
    gemm_plan best;
    best.tile = tiles.size() - 1;
    double least = std::numeric_limits<double>::max();
    for (std::size_t i = 0; i < tiles.size(); ++i) {
        if (tiles[i].shared_bytes > limits.shared_bytes) continue;
        for (std::size_t parts = 1; parts <= most_depth_parts; parts *= 2) {
            const std::size_t part_depth =
                divided_up(divided_up(size.depth, parts), tiles[i].depth) * tiles[i].depth;
            const std::size_t bytes = 4 * parts * size.rows * size.columns * size.count;
            if (parts > 1 && (part_depth < least_part_depth || bytes > limits.partial_bytes)) break;
            const double cost = gemm_cost(size, tiles[i], parts, limits.multiprocessors);
            if (cost >= least) continue;
            least = cost;
            best.tile = i;
            best.parts = parts == 1 ? 1 : static_cast<unsigned>(divided_up(size.depth, part_depth));
            best.part_depth = part_depth;
        }
    }
    return best;
}

}  // namespace demi::inline DEMI_ABI::detail
