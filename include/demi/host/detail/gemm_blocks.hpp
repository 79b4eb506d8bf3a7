// SPDX-License-Identifier: MIT
/// The outer loops of a GEMM: blocks of the result, one thread each, and the memory they need.
#pragma once

#include <demi/host/detail/gemm_finish.hpp>
#include <demi/host/detail/gemm_pack.hpp>
#include <demi/host/detail/gemm_tile.hpp>
#include <demi/host/host_context.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory_resource>

namespace demi::inline DEMI_ABI {
namespace detail {

constexpr std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }
constexpr std::size_t round_up(std::size_t a, std::size_t b) { return divide_up(a, b) * b; }

/// How a result is cut into blocks, and a block into what the caches hold: `depth` steps of the
/// sums times `columns` packed in the second level, tiles of it in the first.
struct gemm_plan {
    std::size_t rows;  ///< of the whole result
    std::size_t columns;
    std::size_t depth;
    std::size_t block_rows;  ///< of a block
    std::size_t block_columns;
    std::size_t block_depth;
    std::size_t panel_rows;
    std::size_t workers;

    static constexpr std::size_t most_rows = 1008;
    static constexpr std::size_t most_columns = 512;
    static constexpr std::size_t most_depth = 256;
    static constexpr std::size_t group_panels = 4;
    /// Multiply-adds that are worth a second thread.
    static constexpr std::size_t work_per_thread = std::size_t{1} << 18;

    std::size_t row_blocks() const { return divide_up(rows, block_rows); }
    std::size_t column_blocks() const { return divide_up(columns, block_columns); }
    std::size_t blocks() const { return row_blocks() * column_blocks(); }
    std::size_t group_rows() const { return group_panels * panel_rows; }
    /// Rows of sums that are kept: all of a block when they are not complete at once.
    std::size_t kept_rows() const {
        return depth > block_depth ? block_rows : std::min(block_rows, group_rows());
    }
};

/// Threads worth starting for so many multiply-adds.
inline std::size_t worthwhile_threads(double work, std::size_t concurrency) {
    const double worth = work / static_cast<double>(gemm_plan::work_per_thread);
    if (worth >= static_cast<double>(concurrency)) return concurrency;
    return worth < 1 ? 1 : static_cast<std::size_t>(worth);
}

/// Plans blocks of at most the largest size, as many as the threads need to finish together.
template <host_isa Isa>
gemm_plan plan_gemm(std::size_t rows, std::size_t columns, std::size_t depth,
                    std::size_t concurrency) {
    using tile = tile_shape<Isa>;
    const double work =
        static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth);
    const std::size_t threads = worthwhile_threads(work, concurrency);
    gemm_plan plan{};
    plan.rows = rows;
    plan.columns = columns;
    plan.depth = depth;
    const std::size_t steps = std::max<std::size_t>(depth, 1);
    plan.block_depth = divide_up(steps, divide_up(steps, gemm_plan::most_depth));
    std::size_t down = divide_up(rows, gemm_plan::most_rows);
    std::size_t across = divide_up(columns, gemm_plan::most_columns);
    for (;;) {
        const std::size_t block_rows = divide_up(rows, down);
        plan.panel_rows = divide_up(block_rows, divide_up(block_rows, tile::rows));
        plan.block_rows = round_up(block_rows, plan.panel_rows);
        plan.block_columns = round_up(divide_up(columns, across), tile::columns);
        const bool can_go_down = plan.block_rows > tile::rows;
        const bool can_go_across = plan.block_columns > tile::columns;
        const bool even = plan.blocks() % threads == 0 || plan.blocks() >= 4 * threads;
        if (even || !(can_go_down || can_go_across)) break;
        if (can_go_down && (plan.block_rows > plan.block_columns || !can_go_across)) {
            ++down;
        } else {
            ++across;
        }
    }
    plan.workers = std::min(threads, plan.blocks());
    return plan;
}

/// Scratch memory for all workers, aligned to cache lines.
class gemm_workspace {
public:
    gemm_workspace(std::pmr::memory_resource& memory, std::size_t workers, std::size_t floats)
        : memory_(memory),
          stride_(round_up(floats, 16)),
          bytes_(workers * stride_ * sizeof(float)),
          data_(static_cast<float*>(memory.allocate(bytes_, alignment))) {}
    gemm_workspace(const gemm_workspace&) = delete;
    gemm_workspace& operator=(const gemm_workspace&) = delete;
    ~gemm_workspace() { memory_.deallocate(data_, bytes_, alignment); }

    float* of_worker(std::size_t worker) const { return data_ + worker * stride_; }

private:
    static constexpr std::size_t alignment = 64;

    std::pmr::memory_resource& memory_;
    std::size_t stride_;
    std::size_t bytes_;
    float* data_;
};

/// One product: computes its blocks, each independent of the others.
template <host_isa Isa, class A, class B, class C, class Finish>
class gemm_run {
public:
    gemm_run(const gemm_plan& plan, const gemm_operand<A>& a, const gemm_operand<B>& b, C* c,
             std::size_t c_stride, const Finish& finish)
        : plan_(plan), a_(a), b_(b), c_(c), c_stride_(c_stride), finish_(finish) {}

    void run(const host_context& context) const {
        const gemm_workspace workspace(*context.memory, plan_.workers, workspace_size());
        if (plan_.workers == 1) {
            for (std::size_t i = 0; i < plan_.blocks(); ++i) block(i, workspace.of_worker(0));
            return;
        }
        std::atomic<std::size_t> next{0};
        context.executor->run(plan_.workers, [&](std::size_t worker) {
            for (std::size_t i = next++; i < plan_.blocks(); i = next++) {
                block(i, workspace.of_worker(worker));
            }
        });
    }

private:
    using tile = tile_shape<Isa>;

    panel_shape a_shape(std::size_t rows, std::size_t depth) const {
        return {rows, depth, plan_.panel_rows, plan_.panel_rows};
    }
    panel_shape b_shape(std::size_t columns, std::size_t depth) const {
        return {columns, depth, tile::columns, tile::columns};
    }
    std::size_t a_size() const {
        return gemm_plan::group_panels * a_shape(plan_.group_rows(), plan_.block_depth).stride();
    }
    std::size_t b_size() const {
        const panel_shape shape = b_shape(plan_.block_columns, plan_.block_depth);
        return shape.count() * shape.stride();
    }
    /// A line more than the columns, so that the rows do not fall into one set of the cache.
    std::size_t sums_stride() const { return plan_.block_columns + 16; }
    std::size_t sums_size() const { return plan_.kept_rows() * sums_stride(); }
    std::size_t scratch_size() const {
        return std::max({pack_scratch_size<Isa>(a_shape(plan_.group_rows(), plan_.block_depth)),
                         pack_scratch_size<Isa>(b_shape(plan_.block_columns, plan_.block_depth)),
                         plan_.block_columns});
    }
    std::size_t workspace_size() const {
        return round_up(a_size(), 16) + round_up(b_size(), 16) + round_up(sums_size(), 16) +
               scratch_size();
    }

    struct region {
        std::size_t row, rows, column, columns;
    };

    void block(std::size_t index, float* memory) const {
        float* a = memory;
        float* b = a + round_up(a_size(), 16);
        float* sums = b + round_up(b_size(), 16);
        float* scratch = sums + round_up(sums_size(), 16);
        const std::size_t row = index % plan_.row_blocks() * plan_.block_rows;
        const std::size_t column = index / plan_.row_blocks() * plan_.block_columns;
        const std::size_t rows = std::min(plan_.block_rows, plan_.rows - row);
        const std::size_t columns = std::min(plan_.block_columns, plan_.columns - column);

        std::size_t depth = 0;
        do {
            const std::size_t steps = std::min(plan_.block_depth, plan_.depth - depth);
            const panel_shape b_panels = b_shape(columns, steps);
            pack_panels<Isa>(b_, column, depth, b_panels, b, scratch);
            for (std::size_t done = 0; done < rows; done += plan_.group_rows()) {
                const std::size_t count = std::min(plan_.group_rows(), rows - done);
                const panel_shape a_panels = a_shape(count, steps);
                pack_panels<Isa>(a_, row + done, depth, a_panels, a, scratch);
                float* group =
                    plan_.kept_rows() > plan_.group_rows() ? sums + done * sums_stride() : sums;
                multiply(a_panels, a, b_panels, b, group, depth != 0);
                if (depth + steps == plan_.depth) {
                    store(group, {row + done, count, column, columns}, scratch);
                }
            }
            depth += steps;
        } while (depth < plan_.depth);
    }

    /// Multiplies packed rows with packed columns; the panel of columns stays in the first level.
    void multiply(const panel_shape& a_panels, const float* a, const panel_shape& b_panels,
                  const float* b, float* sums, bool add) const {
        for (std::size_t j = 0; j < b_panels.count(); ++j) {
            const bool full_width = b_panels.lines_of(j) > tile::lanes;
            const auto kernel = multiply_function_for<Isa>(plan_.panel_rows, full_width);
            for (std::size_t i = 0; i < a_panels.count(); ++i) {
                kernel({a_panels.depth, a + i * a_panels.stride(), b + j * b_panels.stride(),
                        b_panels.pitch,
                        sums + i * plan_.panel_rows * sums_stride() + j * tile::columns,
                        sums_stride(), add});
            }
        }
    }

    void store(float* sums, const region& where, float* scratch) const {
        for (std::size_t i = 0; i < where.rows; ++i) {
            const std::size_t row = where.row + i;
            store_row<Isa>(finish_, sums + i * sums_stride(), c_ + row * c_stride_ + where.column,
                           scratch, row, where.column, where.columns);
        }
    }

    const gemm_plan& plan_;
    const gemm_operand<A>& a_;
    const gemm_operand<B>& b_;
    C* c_;
    std::size_t c_stride_;
    const Finish& finish_;
};

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
