// SPDX-License-Identifier: MIT
/// The outer loops of a GEMM: blocks of the result, one thread each, and the memory they need.
#pragma once

#include <demi/host/detail/gemm_finish.hpp>
#include <demi/host/detail/gemm_pack.hpp>
#include <demi/host/detail/gemm_plan.hpp>
#include <demi/host/detail/gemm_prefetch.hpp>
#include <demi/host/detail/gemm_tile.hpp>
#include <demi/host/host_buffer.hpp>
#include <demi/host/host_context.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory_resource>
#include <type_traits>

namespace demi::inline DEMI_ABI {
namespace detail {

/// Uninitialised floats, aligned to cache lines. Throws `out_of_memory`.
class gemm_workspace {
public:
    gemm_workspace(std::pmr::memory_resource& memory, std::size_t floats)
        : memory_(memory),
          bytes_(floats * sizeof(float)),
          data_(static_cast<float*>(allocate_bytes(memory, bytes_, "gemm"))) {}
    gemm_workspace(const gemm_workspace&) = delete;
    gemm_workspace& operator=(const gemm_workspace&) = delete;
    ~gemm_workspace() { memory_.deallocate(data_, bytes_, buffer_alignment); }

    float* data() const { return data_; }

private:
    std::pmr::memory_resource& memory_;
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
        const gemm_workspace memory(*context.memory, slices_size() + plan_.workers * worker_size());
        float* const slices = memory.data();
        float* const workers = slices + slices_size();
        const std::size_t pieces = plan_.blocks() * plan_.slices();
        std::atomic<std::size_t> next{0};
        const auto work = [&](std::size_t worker) {
            gemm_worker own = make_worker(workers + worker * worker_size());
            for (std::size_t i = next++; i < pieces; i = next++) piece(i, slices, own);
        };
        if (plan_.workers == 1) {
            work(0);
        } else {
            context.executor->run(plan_.workers, work);
        }
        if (plan_.slices() > 1) join_slices(slices, make_worker(workers).scratch);
    }

private:
    using tile = tile_shape<Isa>;

    static constexpr std::size_t group_rows = gemm_plan::group_rows;

    panel_shape b_shape(std::size_t columns, std::size_t depth) const {
        return {columns, depth, plan_.panel_columns};
    }
    static panel_shape a_shape(std::size_t rows, std::size_t depth) {
        return {rows, depth, group_rows};
    }
    std::size_t group_size() const {
        const std::size_t packed = a_shape(group_rows, plan_.block_depth).size();
        const std::size_t copied = group_rows * copied_line_stride(plan_.block_depth);
        return round_up(std::max(packed, copied), 16);
    }
    std::size_t a_size() const {
        if (plan_.rows_in_place || a_.packed != nullptr) return 0;
        return group_size() * (plan_.keeps_rows() ? plan_.groups() * plan_.depth_blocks() : 1);
    }
    std::size_t b_size() const {
        if (b_.packed != nullptr) return 0;
        return round_up(b_shape(plan_.block_columns, plan_.block_depth).size(), 16);
    }
    /// A line more than the columns, so that the rows do not fall into one set of the cache.
    std::size_t sums_stride() const {
        return (plan_.sums_in_result ? plan_.panel_columns : plan_.block_columns) + 16;
    }
    std::size_t sums_size() const { return plan_.kept_rows() * sums_stride(); }
    std::size_t scratch_size() const {
        return pack_scratch_size<Isa>(std::max(group_rows, plan_.block_columns));
    }
    std::size_t worker_size() const {
        return a_size() + b_size() + round_up(sums_size(), 16) + round_up(scratch_size(), 16);
    }
    std::size_t piece_size() const { return plan_.block_rows * sums_stride(); }
    std::size_t slices_size() const {
        return plan_.slices() == 1 ? 0 : plan_.blocks() * plan_.slices() * piece_size();
    }

    struct region {
        std::size_t row, rows, column, columns;
    };

    /// The memory of one worker, and the first row of those that it has packed.
    struct gemm_worker {
        float* a;
        float* b;
        float* sums;
        float* scratch;
        std::size_t packed_row = static_cast<std::size_t>(-1);
    };

    gemm_worker make_worker(float* memory) const {
        float* const b = memory + a_size();
        float* const sums = b + b_size();
        return {memory, b, sums, sums + round_up(sums_size(), 16)};
    }

    /// Blocks beside each other follow each other: they need the same rows.
    region block(std::size_t index) const {
        const std::size_t row = index / plan_.column_blocks() * plan_.block_rows;
        const std::size_t column = index % plan_.column_blocks() * plan_.block_columns;
        return {row, std::min(plan_.block_rows, plan_.rows - row), column,
                std::min(plan_.block_columns, plan_.columns - column)};
    }

    /// One slice of one block. `slices` is where its sums go when there are several.
    void piece(std::size_t index, float* slices, gemm_worker& worker) const {
        const bool sliced = plan_.slices() > 1;
        const bool keeps_all = sliced || plan_.kept_rows() > group_rows;
        float* const sums = sliced ? slices + index * piece_size() : worker.sums;
        const region where = block(index / plan_.slices());
        const std::size_t first = index % plan_.slices() * plan_.slice_depth;
        const std::size_t end = std::min(first + plan_.slice_depth, plan_.depth);
        const bool rows_are_packed = plan_.keeps_rows() && worker.packed_row == where.row;
        float* a = worker.a;

        std::size_t depth = first;
        do {
            const std::size_t steps = std::min(plan_.block_depth, end - depth);
            gemm_columns columns = get_columns(where, depth, steps, worker.b, worker.scratch);
            for (std::size_t done = 0; done < where.rows; done += group_rows) {
                const region part{where.row + done, std::min(group_rows, where.rows - done),
                                  where.column, where.columns};
                const gemm_rows rows =
                    get_rows(part, depth, steps, a, !rows_are_packed, worker.scratch);
                if (plan_.keeps_rows()) a += group_size();
                float* const group = keeps_all ? sums + done * sums_stride() : sums;
                multiply(steps, rows, columns, part, group, depth != first,
                         upcoming(where, done, depth, end));
                if (!columns.keeps_raw) columns.raw = nullptr;
                if (!sliced && depth + steps == end) finish(group, part, worker.scratch);
            }
            depth += steps;
        } while (depth < end);
        worker.packed_row = where.row;
    }

    /// What is needed after the group of rows from `done` on: the next group, or else the next
    /// steps of the columns.
    memory_rectangle upcoming(const region& where, std::size_t done, std::size_t depth,
                              std::size_t end) const {
        constexpr std::size_t elements = elements_per_step<Isa>;
        const std::size_t steps = std::min(plan_.block_depth, end - depth);
        const std::size_t next_row = done + group_rows;
        if (next_row < where.rows) {
            if (a_.packed != nullptr) return {};
            const std::size_t count = std::min(group_rows, where.rows - next_row);
            return rectangle_of(a_, where.row + next_row, count, depth * elements,
                                steps * elements);
        }
        const std::size_t next = depth + steps;
        if (next >= end || b_.packed != nullptr || plan_.columns_in_place) return {};
        return rectangle_of(b_, where.column, where.columns, next * elements,
                            std::min(plan_.block_depth, end - next) * elements);
    }

    gemm_rows get_rows(const region& where, std::size_t depth, std::size_t steps, float* memory,
                       bool pack, float* scratch) const {
        constexpr std::size_t word = sizeof(float);
        const panel_shape shape = a_shape(where.rows, steps);
        const auto panel = [&](const float* from) {
            return gemm_rows{reinterpret_cast<const char*>(from), word, shape.width * word};
        };
        if (a_.packed != nullptr) return panel(a_.packed->at(where.row, depth, steps));
        const std::size_t element = depth * elements_per_step<Isa>;
        const A* const from = a_.data + where.row * a_.line_stride + element * a_.depth_stride;
        if (plan_.rows_in_place) {
            const std::size_t row = a_.line_stride * sizeof(A);
            return {reinterpret_cast<const char*>(from), row,
                    elements_per_step<Isa> * a_.depth_stride * sizeof(A)};
        }
        if (a_.line_stride == 1 || steps == 0) {
            if (pack) pack_panels<Isa>(a_, where.row, depth, shape, memory, scratch);
            return panel(memory);
        }
        if (pack) {
            copy_lines<Isa>(from, a_.line_stride, a_.length - element, where.rows, steps, memory);
        }
        const std::size_t row = copied_line_stride(steps) * word;
        return {reinterpret_cast<const char*>(memory), row, word};
    }

    gemm_columns get_columns(const region& where, std::size_t depth, std::size_t steps,
                             float* memory, float* scratch) const {
        const panel_shape shape = b_shape(where.columns, steps);
        if (b_.packed != nullptr) {
            return {shape, nullptr, b_.packed->at(where.column, depth, steps)};
        }
        if constexpr (std::is_same_v<B, float>) {
            const bool packs_itself = b_.line_stride == 1 && where.rows >= tile::rows;
            if (plan_.columns_in_place || packs_itself) {
                const std::size_t whole = where.columns / shape.width;
                const std::size_t rest = where.columns - whole * shape.width;
                if (rest != 0) {
                    pack_panels<Isa>(b_, where.column + whole * shape.width, depth,
                                     {rest, steps, shape.width}, memory + whole * shape.stride(),
                                     scratch);
                }
                return {shape,           memory,
                        memory,          b_.data + depth * b_.depth_stride + where.column,
                        b_.depth_stride, plan_.columns_in_place};
            }
        }
        pack_panels<Isa>(b_, where.column, depth, shape, memory, scratch);
        return {shape, memory, memory};
    }

    /// Multiplies a group of rows with columns: the rows of a tile stay in the first level.
    void multiply(std::size_t steps, const gemm_rows& rows, const gemm_columns& columns,
                  const region& where, float* sums, bool add,
                  const memory_rectangle& upcoming) const {
        const panel_shape& across = columns.shape;
        const std::size_t tiles = divide_up(where.rows, tile::rows);
        prefetch_schedule ahead(upcoming, tiles * across.count(), steps);
        for (std::size_t i = 0; i < where.rows; i += tile::rows) {
            const std::size_t count = std::min(tile::rows, where.rows - i);
            for (std::size_t j = 0; j < across.count(); ++j) {
                const sums_place to = place_of(j, where, sums);
                gemm_tile one{steps,
                              rows.data + i * rows.row,
                              rows.row,
                              rows.step,
                              columns.packed + j * across.stride(),
                              across.width,
                              to.first + i * to.stride,
                              to.stride,
                              add,
                              ahead.next()};
                multiply_function kernel = multiply_function_for<Isa>(count, across.lines_of(j));
                if (columns.is_raw(j) && (columns.keeps_raw || i == 0)) {
                    one.b = columns.raw + j * across.width;
                    one.b_step = columns.raw_step;
                    if (!columns.keeps_raw) {
                        one.packed = columns.own + j * across.stride();
                        kernel = &detail::multiply<Isa, tile::rows, tile::vectors, true>;
                    }
                }
                prefetch_tile(one.c + across.width, count, to.stride);
                kernel(one);
            }
        }
    }

    struct sums_place {
        float* first;
        std::size_t stride;
    };

    /// Where the sums of a panel of columns are kept.
    sums_place place_of(std::size_t panel, const region& where, float* sums) const {
        const std::size_t column = panel * plan_.panel_columns;
        if constexpr (std::is_same_v<C, float>) {
            if (plan_.sums_in_result) {
                if (column + plan_.panel_columns > where.columns) return {sums, sums_stride()};
                return {c_ + where.row * c_stride_ + where.column + column, c_stride_};
            }
        }
        return {sums + column, sums_stride()};
    }

    /// Asks for the place of the next sums.
    static void prefetch_tile(const float* target, std::size_t rows, std::size_t stride) {
        for (std::size_t i = 0; i < rows; ++i) {
            prefetch_lines(target + i * stride, tile::columns);
        }
    }

    /// Brings complete sums into the result, or into the form of the result.
    void finish(float* sums, const region& where, float* scratch) const {
        region rest = where;
        if constexpr (std::is_same_v<C, float>) {
            if (plan_.sums_in_result) {
                const std::size_t columns =
                    where.columns / plan_.panel_columns * plan_.panel_columns;
                if (!finish_.changes_nothing()) {
                    const region whole{where.row, where.rows, where.column, columns};
                    store(c_ + where.row * c_stride_ + where.column, c_stride_, whole, scratch);
                }
                rest.column += columns;
                rest.columns -= columns;
            }
        }
        if (rest.columns != 0) store(sums, sums_stride(), rest, scratch);
    }

    void store(float* sums, std::size_t stride, const region& where, float* scratch) const {
        for (std::size_t i = 0; i < where.rows; ++i) {
            const std::size_t row = where.row + i;
            store_row<Isa>(finish_, sums + i * stride, c_ + row * c_stride_ + where.column, scratch,
                           row, where.column, where.columns);
        }
    }

    /// Adds the slices of each block, the first one first.
    void join_slices(float* slices, float* scratch) const {
        for (std::size_t i = 0; i < plan_.blocks(); ++i) {
            const region where = block(i);
            float* const sums = slices + i * plan_.slices() * piece_size();
            for (std::size_t slice = 1; slice < plan_.slices(); ++slice) {
                const float* const more = sums + slice * piece_size();
                for (std::size_t row = 0; row < where.rows; ++row) {
                    add_row(sums + row * sums_stride(), more + row * sums_stride(), where.columns);
                }
            }
            store(sums, sums_stride(), where, scratch);
        }
    }

    static void add_row(float* sums, const float* more, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) sums[i] += more[i];
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
