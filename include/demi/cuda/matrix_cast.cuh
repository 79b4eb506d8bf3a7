// SPDX-License-Identifier: MIT
/// Conversion of matrices of any layout on a CUDA device.
#pragma once

#include <demi/cuda/detail/line_cast.cuh>
#include <demi/cuda/detail/tile_cast.cuh>
#include <demi/cuda/launch.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// The lines of a matrix along its own layout.
struct line_counts {
    std::uint64_t lines;
    std::uint64_t length;

    template <class T>
    static line_counts of(const matrix_view<T>& matrix) {
        if (matrix.order() == layout::row_major) return {matrix.rows(), matrix.columns()};
        return {matrix.columns(), matrix.rows()};
    }
};

/// Converts along lines: source and target have one layout.
template <class From, class To, class Element>
void cast_lines(cuda_context& context, matrix_lines<const From> source, matrix_lines<To> target,
                line_counts counts, const Element& element) {
    // Lines without padding make one long line.
    if (counts.lines == 1 || (source.pitch == counts.length && target.pitch == counts.length)) {
        counts = {1, counts.lines * counts.length};
    }
    const line_cast<From, To, Element> pass{source, target, counts.lines, counts.length, element};
    constexpr std::uint64_t warps = pass_threads / pass.warp;
    const auto kernel = matrix_kernel<line_cast<From, To, Element>>;
    const unsigned blocks = resident_blocks(kernel, pass_threads,
                                            (pass.pieces() + warps - 1) / warps, context.device());
    launch("cast", kernel, {blocks, pass_threads}, context.stream(), pass);
}

/// Converts across lines: each line of the target has one element of every line of the source.
template <class From, class To, class Element, class Copy = no_copy>
void cast_tiles(cuda_context& context, matrix_lines<const From> source, matrix_lines<To> target,
                line_counts source_counts, const Element& element, const Copy& copy = {}) {
    using pass_type = tile_cast<From, To, Element, Copy>;
    constexpr std::size_t along = pass_type::shape::along;
    bool reads_groups = source.stands_at(along * sizeof(From));
    if constexpr (pass_type::keeps_copy) {
        reads_groups = reads_groups && copy.stands_at(along * sizeof(To));
    }
    const pass_type pass{source,
                         target,
                         source_counts.lines,
                         source_counts.length,
                         reads_groups,
                         target.stands_at(sizeof(typename pass_type::word)),
                         element,
                         copy};
    // A block for every tile, up to what a grid can have.
    const dim3 blocks(static_cast<unsigned>(std::min<std::uint64_t>(pass.columns(), 0x7fffffff)),
                      static_cast<unsigned>(std::min<std::uint64_t>(pass.rows(), 0xffff)));
    launch("cast", matrix_kernel<pass_type>, {blocks, pass_threads}, context.stream(), pass);
}

/// See kernels/matrix_cast.hpp. One launch; no synchronisation; nothing beyond the matrices is read
/// or written. Random bits are those of the elements of one tensor: the target as it lies in
/// memory, without its padding.
template <class From, class To, class Element>
void cuda_cast_matrix(cuda_context& context, const matrix_view<const From>& from,
                      const matrix_view<To>& to, const Element& element) {
    if (to.empty()) return;
    const auto counts = line_counts::of(from);
    if (from.order() == to.order()) {
        return cast_lines(context, lines_of(from), lines_of(to), counts, element);
    }
    const bool source_is_vector = counts.length == 1 && from.leading_dimension() == 1;
    const bool target_is_vector = counts.lines == 1 && to.leading_dimension() == 1;
    if (source_is_vector || target_is_vector) {
        return cast_lines(context, lines_of(from), lines_of(to), {1, counts.lines * counts.length},
                          element);
    }
    cast_tiles(context, lines_of(from), lines_of(to), counts, element);
}

}  // namespace demi::inline DEMI_ABI::detail
