// SPDX-License-Identifier: MIT
/// The shapes of the tiles that a block of threads computes on tensor cores; specialise to choose.
#pragma once

#include <demi/core/config.hpp>

#include <cstddef>

namespace demi::inline DEMI_ABI {

/// A tile of a product: `Rows` x `Columns` values, whose operands come in slices of `Depth` 16-bit
/// values, or half as many of 4 bytes, or twice as many of one, through a ring of `Stages` slices
/// in shared memory; each warp computes `WarpRows` x `WarpColumns` of it.
///
/// A warp part of 64 x 64 values reads shared memory least; it takes 128 registers of each thread.
template <int Rows, int Columns, int Depth, int WarpRows, int WarpColumns, int Stages>
struct mma_tile {
    static constexpr int rows = Rows;
    static constexpr int columns = Columns;
    static constexpr int depth = Depth;
    static constexpr int warp_rows = WarpRows;
    static constexpr int warp_columns = WarpColumns;
    static constexpr int stages = Stages;
    static constexpr int row_warps = Rows / WarpRows;
    static constexpr int threads = 32 * row_warps * (Columns / WarpColumns);

    static constexpr int stage_bytes = 2 * Depth * (Rows + Columns);
    /// Where each warp turns 16 rows of sums into lines of the result.
    static constexpr int line_floats = WarpColumns + 8;
    static constexpr int turn_bytes = threads / 32 * 16 * line_floats * 4;
    static constexpr std::size_t shared_bytes =
        Stages * stage_bytes > turn_bytes ? Stages* stage_bytes : turn_bytes;

    static_assert(Depth == 32 || Depth == 64, "a slice is 32 or 64 values deep");
    static_assert((WarpRows == 32 || WarpRows == 64) && (WarpColumns == 32 || WarpColumns == 64),
                  "a warp computes 32 or 64 rows and columns");
    static_assert(Rows % 64 == 0 && Columns % 64 == 0 && Rows % WarpRows == 0 &&
                      Columns % WarpColumns == 0,
                  "a tile has a multiple of 64 rows and columns, and whole warp parts");
    static_assert(Stages >= 3, "a ring has a slice in use and two on their way, or more");
    static_assert(threads <= 1024 && Depth * Rows % (8 * threads) == 0 &&
                      Depth * Columns % (8 * threads) == 0 && 2 * Rows <= threads * 4 &&
                      2 * Columns <= threads * 4,
                  "every thread copies the same number of 16-byte pieces");
};

/// A tile of a product on devices of compute capability 9.0: two groups of four warps compute 64
/// rows each of `Rows` = 128, or half of the columns each of `Rows` = 64, while a third group has
/// the copy engine bring 128 bytes of the depth at a time into a ring of `Stages` slices in shared
/// memory.
///
/// A block stays for many tiles, so there is one to a multiprocessor, whose shared memory it may
/// fill. A group's part has 64, 128 or 256 columns, of 8-bit operands 128 at most.
template <int Rows, int Columns, int Stages>
struct wgmma_tile {
    static constexpr int rows = Rows;
    static constexpr int columns = Columns;
    static constexpr int stages = Stages;
    static constexpr int depth_bytes = 128;
    static constexpr int group_columns = Columns * Rows / 128;
    static constexpr int group_threads = 128;
    static constexpr int consumers = 2 * group_threads;
    static constexpr int threads = consumers + group_threads;

    static constexpr int stage_bytes = depth_bytes * (Rows + Columns);
    /// Where each consuming warp turns 16 rows of 32 sums into lines of the result.
    static constexpr int turn_columns = 32;
    static constexpr int turn_bytes = consumers / 32 * 16 * (turn_columns + 8) * 4;
    /// Slices begin at multiples of 1024, wherever the block's memory does; 256 for barriers.
    static constexpr std::size_t shared_bytes = Stages * stage_bytes + turn_bytes + 1024 + 256;

    static_assert(Rows == 64 || Rows == 128, "a tile has 64 or 128 rows");
    static_assert(group_columns == 64 || group_columns == 128 || group_columns == 256,
                  "a group computes 64, 128 or 256 columns");
    static_assert(Columns <= 256, "the copy engine brings 256 lines at most");
    static_assert(Stages >= 2 && Stages <= 16, "a ring has 2 to 16 slices");
};

/// The tiles that a product chooses from, by its shape and the size of the device.
template <class... Tiles>
struct tile_choice {
    static_assert(sizeof...(Tiles) > 0);
};

/// The tiles for operands of one format on devices of an architecture: `Arch` is 80 for
/// `mma.sync`, which serves newer devices too, 89 for that of 8-bit formats, and 90 for `wgmma` in
/// programs compiled for sm_90a, whose operands come through the copy engine. `tf32` stands for
/// float matrices that are multiplied so; two 8-bit formats have the tiles of the left one.
/// `narrow_tiles` are for operands of which 16 bytes cannot be read at once, because of where they
/// begin or how far their lines are apart.
/// Specialise it before the first product:
/// `template <> struct demi::gemm_tile<80, demi::float16> { using tiles = ...; };`.
/// Cost: each tile for 80 is compiled four times, once for each pair of operand layouts, the others
/// once.
template <int Arch, class Format>
struct gemm_tile {
    using tiles = tile_choice<mma_tile<256, 128, 32, 64, 64, 3>, mma_tile<128, 128, 32, 64, 64, 4>,
                              mma_tile<64, 64, 32, 32, 32, 4>>;
    using narrow_tiles = tile_choice<mma_tile<128, 64, 32, 64, 32, 4>>;
};

/// The sums of a slice take as many registers as those of all.
template <class Format>
struct gemm_tile<89, Format> {
    using tiles = tile_choice<mma_tile<128, 128, 32, 64, 32, 4>, mma_tile<64, 64, 32, 32, 32, 4>>;
    using narrow_tiles = tile_choice<mma_tile<128, 64, 32, 32, 32, 4>>;
};

template <class Format>
struct gemm_tile<90, Format> {
    using tiles =
        tile_choice<wgmma_tile<128, 256, 4>, wgmma_tile<128, 128, 6>, wgmma_tile<64, 128, 8>>;
};

/// For an 8-bit left operand.
template <class Format>
    requires(sizeof(Format) == 1)
struct gemm_tile<90, Format> {
    using tiles = tile_choice<wgmma_tile<128, 128, 6>, wgmma_tile<64, 128, 8>>;
};

}  // namespace demi::inline DEMI_ABI
