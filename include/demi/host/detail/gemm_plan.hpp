// SPDX-License-Identifier: MIT
/// How a GEMM is cut into pieces for threads and caches.
#pragma once

#include <demi/host/detail/gemm_pack.hpp>
#include <demi/host/detail/gemm_panels.hpp>
#include <demi/host/detail/gemm_tile.hpp>

#include <algorithm>
#include <cstddef>

namespace demi::inline DEMI_ABI {
namespace detail {

/// How an operand is given.
struct operand_form {
    bool packed = false;     ///< by the caller, in panels
    bool readable = false;   ///< whole steps that tiles could read where they are
    bool adjacent = false;   ///< the lines lie beside each other
    std::size_t stride = 0;  ///< in elements, between lines, or between steps of adjacent lines
};

/// What a plan depends on; the depth is in elements.
struct gemm_problem {
    std::size_t rows;
    std::size_t columns;
    std::size_t depth;
    std::size_t concurrency;
    operand_form a;
    operand_form b;
    bool sums_in_result;  ///< whether unfinished sums are kept where the result will be
};

/// How a result is cut into blocks, and a block into what the caches hold: `block_depth` steps of
/// the sums times `block_columns` packed in the second level, a tile's rows of it in the first. A
/// long sum is cut into slices, which depend on the shape only: so do the bits of the result.
struct gemm_plan {
    std::size_t rows;  ///< of the whole result
    std::size_t columns;
    std::size_t depth;  ///< in steps
    std::size_t block_rows;
    std::size_t block_columns;
    std::size_t block_depth;
    std::size_t slice_depth;
    std::size_t panel_columns;
    std::size_t workers;
    bool sums_in_result;
    bool rows_in_place;  ///< whether they are multiplied where they are
    bool columns_in_place;

    /// Steps of the rows of a block altogether: they stay in the third level while columns pass by.
    static constexpr std::size_t most_row_steps = std::size_t{1} << 20;
    static constexpr std::size_t most_columns = 128;
    static constexpr std::size_t most_depth = 1024;
    /// Rows that are packed at a time.
    static constexpr std::size_t group_rows = 48;
    /// Floats of columns in place that stay in the second level while all rows pass by.
    static constexpr std::size_t most_in_place = std::size_t{64} * 1024;
    /// Columns that one row of tiles reads only once: few long streams for the processor to foresee
    /// where the columns lie beside each other.
    static constexpr std::size_t streamed_columns = 512;
    static constexpr std::size_t streamed_depth = 16;
    static constexpr std::size_t streamed_line_depth = 256;
    /// Multiply-adds that are worth a second thread.
    static constexpr std::size_t work_per_thread = std::size_t{1} << 18;
    /// A result of so few elements is not worth a block per thread; its sums are sliced instead.
    static constexpr std::size_t most_sliced_elements = 4096;
    static constexpr std::size_t least_slice = 2048;
    static constexpr std::size_t most_slices = 16;

    std::size_t row_blocks() const { return divide_up(rows, block_rows); }
    std::size_t column_blocks() const { return divide_up(columns, block_columns); }
    std::size_t blocks() const { return row_blocks() * column_blocks(); }
    std::size_t slices() const { return std::max<std::size_t>(1, divide_up(depth, slice_depth)); }
    std::size_t depth_blocks() const { return divide_up(slice_depth, block_depth); }
    /// Rows of a block in groups that are packed at a time.
    std::size_t groups() const { return divide_up(block_rows, group_rows); }
    /// Whether packed rows are kept for the blocks beside this one.
    bool keeps_rows() const { return column_blocks() > 1 && slices() == 1; }
    /// Rows of sums that a worker keeps: all of a block when they are not complete at once.
    std::size_t kept_rows() const {
        return depth > block_depth ? block_rows : std::min(block_rows, group_rows);
    }
};

/// Steps that are packed at a time. Slices, which only long sums have, are made of whole blocks.
inline std::size_t depth_of_blocks(std::size_t depth) {
    if (depth >= 2 * gemm_plan::least_slice) return gemm_plan::most_depth;
    const std::size_t steps = std::max<std::size_t>(depth, 1);
    return divide_up(steps, divide_up(steps, gemm_plan::most_depth));
}

/// Steps of a slice.
inline std::size_t depth_of_slices(std::size_t rows, std::size_t columns, std::size_t depth) {
    const std::size_t all = std::max<std::size_t>(depth, 1);
    if (depth < 2 * gemm_plan::least_slice || rows > gemm_plan::most_sliced_elements / columns) {
        return all;
    }
    const std::size_t slices = std::min(depth / gemm_plan::least_slice, gemm_plan::most_slices);
    return round_up(divide_up(depth, slices), gemm_plan::most_depth);
}

/// Whether tiles read columns where they are: when these stay in the cache or are read only once.
inline bool columns_in_place(const operand_form& form, bool read_once, std::size_t depth) {
    if (!form.readable || form.packed || !form.adjacent) return false;
    return read_once || form.stride * depth <= gemm_plan::most_in_place;
}

/// The same for rows. Adjacent ones take one line of the cache per step: it had better stay there.
inline bool rows_in_place(const operand_form& form, std::size_t depth) {
    if (!form.readable || form.packed) return false;
    return !form.adjacent || form.stride * depth <= gemm_plan::most_in_place;
}

/// Threads worth starting for so many multiply-adds.
inline std::size_t worthwhile_threads(double work, std::size_t concurrency) {
    const double worth = work / static_cast<double>(gemm_plan::work_per_thread);
    if (worth >= static_cast<double>(concurrency)) return concurrency;
    return worth < 1 ? 1 : static_cast<std::size_t>(worth);
}

/// Plans blocks of at most the largest size, as many as the threads need to finish together.
template <host_isa Isa>
gemm_plan plan_gemm(const gemm_problem& problem) {
    using tile = tile_shape<Isa>;
    const double work = static_cast<double>(problem.rows) * static_cast<double>(problem.columns) *
                        static_cast<double>(problem.depth);
    const std::size_t threads = worthwhile_threads(work, problem.concurrency);
    gemm_plan plan{};
    plan.rows = problem.rows;
    plan.columns = problem.columns;
    plan.depth = divide_up(problem.depth, elements_per_step<Isa>);
    plan.slice_depth = depth_of_slices(plan.rows, plan.columns, plan.depth);
    plan.block_depth = depth_of_blocks(plan.depth);
    plan.sums_in_result = problem.sums_in_result && plan.slices() == 1;
    const bool read_once = plan.rows <= tile::rows && !problem.a.packed && !problem.b.packed;
    plan.rows_in_place = rows_in_place(problem.a, plan.block_depth);
    plan.columns_in_place = columns_in_place(problem.b, read_once, plan.block_depth);
    const bool streams = read_once && problem.b.adjacent;
    if (read_once) {
        plan.block_depth = std::min(
            plan.block_depth, streams ? gemm_plan::streamed_depth : gemm_plan::streamed_line_depth);
    }
    plan.panel_columns = tile::columns;
    const std::size_t most_rows = gemm_plan::most_row_steps / std::max<std::size_t>(plan.depth, 1);
    std::size_t down = divide_up(plan.rows, std::max(most_rows, gemm_plan::group_rows));
    std::size_t across =
        divide_up(plan.columns, streams ? gemm_plan::streamed_columns : gemm_plan::most_columns);
    const std::size_t row_unit = problem.a.packed ? gemm_plan::group_rows : tile::rows;
    for (;;) {
        plan.block_rows = round_up(divide_up(plan.rows, down), row_unit);
        plan.block_columns = round_up(divide_up(plan.columns, across), plan.panel_columns);
        const std::size_t pieces = plan.blocks() * plan.slices();
        const bool even = pieces % threads == 0 || pieces >= 4 * threads;
        if (even) break;
        // Blocks beside each other pack no column twice.
        if (plan.block_columns > plan.panel_columns) {
            ++across;
        } else if (plan.block_rows > row_unit) {
            ++down;
        } else {
            break;
        }
    }
    plan.workers = std::min(threads, plan.blocks() * plan.slices());
    return plan;
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
