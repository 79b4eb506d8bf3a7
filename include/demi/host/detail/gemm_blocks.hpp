// SPDX-License-Identifier: MIT
/// The outer loops of a GEMM: blocks of the result, one thread each, and the memory they need.
#pragma once

#include <demi/host/detail/gemm_finish.hpp>
#include <demi/host/detail/gemm_memory.hpp>
#include <demi/host/detail/gemm_pack.hpp>
#include <demi/host/detail/gemm_plan.hpp>
#include <demi/host/detail/gemm_prefetch.hpp>
#include <demi/host/detail/gemm_tile.hpp>
#include <demi/host/host_context.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <type_traits>

namespace demi::inline DEMI_ABI {
namespace detail {

/// One product: computes its blocks, each independent of the others.
template <host_isa Isa, class A, class B, class C, class Finish>
class gemm_run {
public:
    gemm_run(const gemm_plan& plan, const gemm_operand<A>& a, const gemm_operand<B>& b, C* c,
             std::size_t c_stride, const Finish& finish)
        : plan_(plan),
          layout_(plan, a.packed == nullptr && !plan.rows_in_place, b.packed == nullptr),
          a_(a),
          b_(b),
          c_(c),
          c_stride_(c_stride),
          finish_(finish) {}

    void run(const host_context& context) const {
        const gemm_workspace memory(*context.memory, layout_.size());
        const std::size_t pieces = plan_.blocks() * plan_.slices();
        std::atomic<std::size_t> next{0};
        const auto work = [&](std::size_t index) {
            gemm_worker worker = layout_.worker(memory.data(), index);
            for (std::size_t i = next++; i < pieces; i = next++) piece(i, memory.data(), worker);
        };
        if (plan_.workers == 1) {
            work(0);
        } else {
            context.executor->run(plan_.workers, work);
        }
        if (plan_.slices() > 1) {
            join_slices(memory.data(), layout_.worker(memory.data(), 0).scratch);
        }
    }

private:
    using tile = tile_shape<Isa>;

    static constexpr std::size_t group_rows = gemm_plan::group_rows;

    struct region {
        std::size_t row, rows, column, columns;
    };

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
        float* const sums = sliced ? slices + layout_.slice(index) : worker.sums;
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
                if (plan_.keeps_rows()) a += layout_.group_size();
                float* const group = keeps_all ? sums + done * layout_.sums_stride() : sums;
                multiply(steps, rows, columns, part, group, depth != first,
                         upcoming(where, done, depth, end, rows_are_packed ? a : nullptr));
                if (!columns.keeps_raw) columns.raw_columns = 0;
                if (!sliced && depth + steps == end) finish(group, part, worker.scratch);
            }
            depth += steps;
        } while (depth < end);
        worker.packed_row = where.row;
    }

    /// What is needed after the group of rows from `done` on: the next group, which may be packed
    /// already, or else the next steps of the columns.
    memory_rectangle upcoming(const region& where, std::size_t done, std::size_t depth,
                              std::size_t end, const float* packed_rows) const {
        constexpr std::size_t elements = elements_per_step<Isa>;
        const std::size_t steps = std::min(plan_.block_depth, end - depth);
        const std::size_t next_row = done + group_rows;
        if (next_row < where.rows) {
            if (a_.packed != nullptr) return {};
            if (packed_rows != nullptr) {
                const std::size_t bytes = steps * sizeof(float);
                return {reinterpret_cast<const char*>(packed_rows), group_rows, bytes, bytes};
            }
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
        const panel_shape shape = layout_.rows_shape(where.rows, steps);
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

    /// How many columns make up whole panels, or all of them when they make up whole vectors.
    static std::size_t whole_columns(std::size_t columns, bool vectors) {
        if (vectors && columns % tile::lanes == 0) return columns;
        return columns / tile::columns * tile::columns;
    }

    gemm_columns get_columns(const region& where, std::size_t depth, std::size_t steps,
                             float* memory, float* scratch) const {
        const panel_shape shape = layout_.columns_shape(where.columns, steps);
        if (b_.packed != nullptr) {
            return {shape, nullptr, b_.packed->at(where.column, depth, steps)};
        }
        if constexpr (std::is_same_v<B, float>) {
            const bool keeps_raw = plan_.columns_in_place;
            if (keeps_raw || (b_.line_stride == 1 && where.rows >= tile::rows)) {
                const std::size_t raw = whole_columns(where.columns, keeps_raw);
                if (raw != where.columns) {
                    pack_panels<Isa>(b_, where.column + raw, depth,
                                     {where.columns - raw, steps, shape.width},
                                     memory + raw / shape.width * shape.stride(), scratch);
                }
                return {shape,           memory,
                        memory,          b_.data + depth * b_.depth_stride + where.column,
                        b_.depth_stride, raw,
                        keeps_raw};
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
                if (column >= whole_columns(where.columns, true))
                    return {sums, layout_.sums_stride()};
                return {c_ + where.row * c_stride_ + where.column + column, c_stride_};
            }
        }
        return {sums + column, layout_.sums_stride()};
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
                const std::size_t columns = whole_columns(where.columns, true);
                if (!finish_.changes_nothing()) {
                    const region whole{where.row, where.rows, where.column, columns};
                    store(c_ + where.row * c_stride_ + where.column, c_stride_, whole, scratch);
                }
                rest.column += columns;
                rest.columns -= columns;
            }
        }
        if (rest.columns != 0) store(sums, layout_.sums_stride(), rest, scratch);
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
            float* const sums = slices + layout_.slice(i * plan_.slices());
            for (std::size_t slice = 1; slice < plan_.slices(); ++slice) {
                const float* const more = sums + layout_.slice(slice);
                for (std::size_t row = 0; row < where.rows; ++row) {
                    add_row(sums + row * layout_.sums_stride(), more + row * layout_.sums_stride(),
                            where.columns);
                }
            }
            store(sums, layout_.sums_stride(), where, scratch);
        }
    }

    static void add_row(float* sums, const float* more, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) sums[i] += more[i];
    }

    const gemm_plan& plan_;
    const gemm_memory_layout<Isa> layout_;
    const gemm_operand<A>& a_;
    const gemm_operand<B>& b_;
    C* c_;
    std::size_t c_stride_;
    const Finish& finish_;
};

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
