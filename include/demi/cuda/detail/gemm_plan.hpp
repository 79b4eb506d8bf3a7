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
};

struct gemm_size {
    std::size_t rows;
    std::size_t columns;
    std::size_t depth;
    std::size_t count;  ///< products of a batch
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
/// at 48 multiplications a byte, and cost one more launch.
inline double gemm_cost(const gemm_size& size, const tile_size& tile, std::size_t parts,
                        std::size_t multiprocessors) {
    const std::size_t tiles =
        divided_up(size.rows, tile.rows) * divided_up(size.columns, tile.columns) * size.count;
    const auto most = static_cast<double>(divided_up(tiles * parts, multiprocessors));
    const auto area =
        static_cast<double>(tile.rows * tile.columns + 32 * (tile.rows + tile.columns));
    const auto depth = static_cast<double>(divided_up(size.depth, parts) + 256);
    double cost = most * area * depth;
    if (parts > 1) {
        const double bytes = 8.0 * static_cast<double>(parts) * static_cast<double>(size.rows) *
                             static_cast<double>(size.columns) * static_cast<double>(size.count);
        cost += 48 * bytes / static_cast<double>(multiprocessors) + 4.0e6;
    }
    return cost;
}

inline constexpr std::size_t most_depth_parts = 32;
inline constexpr std::size_t least_part_depth = 256;
inline constexpr std::size_t most_partial_bytes = std::size_t{64} << 20;

/// Takes the cheapest of the tiles that fit into `shared_bytes`; the last one when none does.
inline gemm_plan plan_gemm(const gemm_size& size, std::span<const tile_size> tiles,
                           std::size_t multiprocessors, std::size_t shared_bytes) {
    gemm_plan best;
    best.tile = tiles.size() - 1;
    double least = std::numeric_limits<double>::max();
    for (std::size_t i = 0; i < tiles.size(); ++i) {
        if (tiles[i].shared_bytes > shared_bytes) continue;
        for (std::size_t parts = 1; parts <= most_depth_parts; parts *= 2) {
            const std::size_t part_depth =
                divided_up(divided_up(size.depth, parts), tiles[i].depth) * tiles[i].depth;
            const std::size_t bytes = 4 * parts * size.rows * size.columns * size.count;
            if (parts > 1 && (part_depth < least_part_depth || bytes > most_partial_bytes)) break;
            const double cost = gemm_cost(size, tiles[i], parts, multiprocessors);
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
