// SPDX-License-Identifier: MIT
/// The way of a block through the chunks of a pass.
#pragma once

#include <demi/cuda/detail/pass_operand.cuh>
#include <demi/cuda/detail/tensor_table.hpp>

#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// Elements of a chunk when every thread has `InFlight` groups under way at a time.
template <std::size_t InFlight, class... Operands>
inline constexpr std::size_t pass_chunk = pass_threads* InFlight* group_size<Operands...>;

/// What a thread holds of one chunk: every `pass_threads`-th of its whole groups, from `first` on.
template <std::size_t InFlight, class... Operands>
struct held_groups {
    static constexpr std::size_t size = group_size<Operands...>;

    std::uint64_t begin;
    unsigned first;
    unsigned count;  ///< in the chunk
    held<size, Operands...> parts[InFlight];

    /// Calls `visit(held, index)` for the groups of this thread.
    template <class Visit>
    __device__ void each(const Visit& visit) {
        each_of<InFlight>(0, visit);
    }

    /// The same for `Count` of them.
    template <unsigned Count, class Visit>
    __device__ void each_of(unsigned from, const Visit& visit) {
#pragma unroll
        for (unsigned i = from; i < from + Count; ++i) {
            const unsigned group = first + i * pass_threads;
            if (group < count) visit(parts[i], begin + group * size);
        }
    }
};

/// Reads the elements of all chunks of this block. `visit_groups(held_groups, tensor)` gets those
/// in whole groups, where the alignment allows, and `visit_single(held, tensor, index)` the others.
/// Neighbouring threads take neighbouring memory either way. A chunk takes `steps` steps.
template <std::size_t InFlight, class... Operands, class VisitGroups, class VisitSingle>
__device__ void walk_chunks(const tensor_table<sizeof...(Operands)>& table, unsigned steps,
                            const VisitGroups& visit_groups, const VisitSingle& visit_single) {
    constexpr std::size_t size = group_size<Operands...>;
    constexpr unsigned step_groups = InFlight * pass_threads;
    const std::uint64_t chunk_size = steps * std::uint64_t{step_groups * size};
    std::uint32_t place = 0;
    for (std::uint64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
        place = table.tensor_of_chunk(chunk, place);
        const auto tensor = table.entries()[place];
        const std::uint64_t before = (chunk - tensor.first_chunk) * chunk_size;
        const std::uint64_t begin = ::min(tensor.head + before, tensor.size);
        const std::uint64_t end = ::min(begin + chunk_size, tensor.size);

        held_groups<InFlight, Operands...> groups;
        groups.begin = begin;
        groups.count = tensor.in_groups ? static_cast<unsigned>((end - begin) / size) : 0u;
#pragma unroll 1
        for (unsigned step = 0; step < steps; ++step) {
            groups.first = threadIdx.x + step * step_groups;
            groups.each([&](auto& part, std::uint64_t index) { part.read(tensor.data, index); });
            visit_groups(groups, tensor);
        }

        const auto head = before == 0 ? static_cast<unsigned>(begin) : 0u;
        const std::uint64_t tail = begin + groups.count * size;
        const auto singles = head + static_cast<unsigned>(end - tail);
        for (unsigned i = threadIdx.x; i < singles; i += pass_threads) {
            const std::uint64_t index = i < head ? i : tail + (i - head);
            held<1, Operands...> part;
            part.read(tensor.data, index);
            visit_single(part, tensor, index);
        }
    }
}

/// The same where groups and single elements are treated alike, by `visit(held, tensor, index)`.
template <std::size_t InFlight, class... Operands, class Visit>
__device__ void walk_chunks(const tensor_table<sizeof...(Operands)>& table, unsigned steps,
                            const Visit& visit) {
    walk_chunks<InFlight, Operands...>(
        table, steps,
        [&](auto& groups, const auto& tensor) {
            groups.each([&](auto& part, std::uint64_t index) { visit(part, tensor, index); });
        },
        visit);
}

}  // namespace demi::inline DEMI_ABI::detail
