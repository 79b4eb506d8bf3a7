// SPDX-License-Identifier: MIT
/// The memory that a GEMM works in: what the threads pack, and sums that are not complete yet.
#pragma once

#include <demi/host/detail/gemm_pack.hpp>
#include <demi/host/detail/gemm_plan.hpp>
#include <demi/host/host_buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <memory_resource>

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

/// The memory of one worker, and the first row of those that it has packed.
struct gemm_worker {
    float* a;
    float* b;
    float* sums;
    float* scratch;
    std::size_t packed_row = static_cast<std::size_t>(-1);
};

/// How the memory is shared out.
template <host_isa Isa>
class gemm_memory_layout {
public:
    gemm_memory_layout(const gemm_plan& plan, bool packs_rows, bool packs_columns)
        : plan_(plan), packs_rows_(packs_rows), packs_columns_(packs_columns) {}

    std::size_t size() const { return slices_size() + plan_.workers * worker_size(); }

    gemm_worker worker(float* memory, std::size_t index) const {
        float* const a = memory + slices_size() + index * worker_size();
        float* const b = a + rows_size();
        float* const sums = b + columns_size();
        return {a, b, sums, sums + round_up(sums_size(), 16)};
    }

    /// Where the sums of a slice of a block begin, from the start of the memory on.
    std::size_t slice(std::size_t index) const { return index * plan_.block_rows * sums_stride(); }

    /// A line more than the columns, so that the rows do not fall into one set of the cache.
    std::size_t sums_stride() const {
        return (plan_.sums_in_result ? plan_.panel_columns : plan_.block_columns) + 16;
    }

    panel_shape rows_shape(std::size_t rows, std::size_t depth) const {
        return {rows, depth, gemm_plan::group_rows};
    }
    panel_shape columns_shape(std::size_t columns, std::size_t depth) const {
        return {columns, depth, plan_.panel_columns};
    }

    /// Of one group of rows for one block of steps.
    std::size_t group_size() const {
        const std::size_t rows = gemm_plan::group_rows;
        const std::size_t packed = rows_shape(rows, plan_.block_depth).size();
        const std::size_t copied = rows * copied_line_stride(plan_.block_depth);
        return round_up(std::max(packed, copied), 16);
    }

private:
    std::size_t rows_size() const {
        if (!packs_rows_) return 0;
        return group_size() * (plan_.keeps_rows() ? plan_.groups() * plan_.depth_blocks() : 1);
    }
    std::size_t columns_size() const {
        if (!packs_columns_) return 0;
        return round_up(columns_shape(plan_.block_columns, plan_.block_depth).size(), 16);
    }
    std::size_t sums_size() const { return plan_.kept_rows() * sums_stride(); }
    std::size_t worker_size() const {
        const std::size_t lines = std::max(gemm_plan::group_rows, plan_.block_columns);
        return rows_size() + columns_size() + round_up(sums_size(), 16) +
               round_up(pack_scratch_size<Isa>(lines), 16);
    }
    std::size_t slices_size() const {
        return plan_.slices() == 1 ? 0 : slice(plan_.blocks() * plan_.slices());
    }

    const gemm_plan& plan_;
    bool packs_rows_;
    bool packs_columns_;
};

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
