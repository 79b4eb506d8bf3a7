// SPDX-License-Identifier: MIT
/// An operand of products on the host, packed once and for all of them.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/core/matrix_view.hpp>
#include <demi/host/detail/gemm_kernel.hpp>
#include <demi/host/detail/gemm_pack.hpp>
#include <demi/host/detail/gemm_plan.hpp>
#include <demi/host/host_buffer.hpp>
#include <demi/host/host_context.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace demi::inline DEMI_ABI {

/// A packed matrix, and what it was packed for. Movable; made by `host_backend::pack`.
class host_packed_matrix {
public:
    /// The instruction set of the kernels that read it.
    host_isa isa() const noexcept { return isa_; }
    operand_side side() const noexcept { return side_; }
    /// The layout of the results of its products.
    layout result() const noexcept { return result_; }
    std::size_t rows() const noexcept { return rows_; }
    std::size_t columns() const noexcept { return columns_; }
    std::size_t bytes() const noexcept { return memory_.size() * sizeof(float); }

    /// What a kernel reads.
    detail::packed_panels panels() const noexcept {
        const bool left = side_ == operand_side::left;
        return {memory_.data(), left ? rows_ : columns_, width_, block_depth_};
    }

    /// Packs on the executor's threads. Throws `out_of_memory`.
    template <class Partner, class T>
    static host_packed_matrix make(const host_context& context, const matrix_view<const T>& matrix,
                                   operand_side side, layout result) {
        host_packed_matrix packed;
        packed.isa_ = detail::product_isa<T, Partner>(context.isa);
        packed.side_ = side;
        packed.result_ = result;
        packed.rows_ = matrix.rows();
        packed.columns_ = matrix.columns();
        detail::run_for_kernel<T, Partner>(
            context.isa, [&]<host_isa Isa>(detail::isa_constant<Isa>) {
                packed.fill<Isa>(context, side == operand_side::left ? transposed(matrix) : matrix);
            });
        return packed;
    }

private:
    host_packed_matrix() = default;

    /// Packs the columns of a matrix: the lines of the operand.
    template <host_isa Isa, class T>
    void fill(const host_context& context, const matrix_view<const T>& matrix) {
        const detail::gemm_operand<T> lines{matrix.data(), matrix.columns(), matrix.rows(),
                                            matrix.column_stride(), matrix.row_stride()};
        const std::size_t count = matrix.columns();
        const std::size_t depth = detail::divide_up(matrix.rows(), detail::elements_per_step<Isa>);
        const bool are_rows = (side_ == operand_side::left) == (result_ == layout::row_major);
        width_ = are_rows ? detail::gemm_plan::group_rows : detail::tile_shape<Isa>::columns;
        block_depth_ = detail::depth_of_blocks(depth);
        const std::size_t blocks = detail::divide_up(depth, block_depth_);
        const detail::panel_shape whole{count, block_depth_, width_};
        memory_ = host_buffer<float>(blocks * whole.size(), context.memory);

        const std::size_t part = detail::round_up(lines_per_part, width_);
        const std::size_t parts = detail::divide_up(count, part);
        const auto pack_part = [&](std::size_t index) {
            const std::size_t line = index % parts * part;
            const std::size_t step = index / parts * block_depth_;
            const std::size_t steps = std::min(block_depth_, depth - step);
            const detail::panel_shape shape{std::min(part, count - line), steps, width_};
            alignas(64) float scratch[detail::converted_steps * detail::tile_shape<Isa>::lanes];
            float* const to = memory_.data() + (panels().at(line, step, steps) - memory_.data());
            detail::pack_panels<Isa>(lines, line, step, shape, to, scratch);
        };
        if (context.executor != nullptr && count * matrix.rows() > detail::parallel_threshold) {
            context.executor->run(blocks * parts, pack_part);
        } else {
            for (std::size_t i = 0; i < blocks * parts; ++i) pack_part(i);
        }
    }

    static constexpr std::size_t lines_per_part = 128;

    host_buffer<float> memory_;
    host_isa isa_ = host_isa::portable;
    operand_side side_ = operand_side::left;
    layout result_ = layout::row_major;
    std::size_t rows_ = 0;
    std::size_t columns_ = 0;
    std::size_t width_ = 1;
    std::size_t block_depth_ = 1;
};

namespace detail {

inline std::string_view name_of(layout order) {
    return order == layout::row_major ? "row-major" : "column-major";
}

/// Throws `invalid_argument` unless a matrix was packed for this kernel and result.
inline void require_packed_for(const host_packed_matrix& packed, host_isa isa, layout result) {
    if (packed.isa() != isa) {
        raise(invalid_argument(message("gemm: matrix packed for ", name(packed.isa()),
                                       ", expected ", name(isa), " as this product uses")));
    }
    if (packed.result() != result) {
        raise(invalid_argument(message("gemm: matrix packed for ", name_of(packed.result()),
                                       " results, expected ", name_of(result))));
    }
}

}  // namespace detail

}  // namespace demi::inline DEMI_ABI
