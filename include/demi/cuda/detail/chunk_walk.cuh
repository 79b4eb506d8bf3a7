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

/// Reads the elements of all chunks of this block and gives them to `visit(held, tensor, index)`:
/// whole groups where the alignment allows, single elements elsewhere. Neighbouring threads take
/// neighbouring memory either way.
template <std::size_t InFlight, class... Operands, class Visit>
__device__ void walk_chunks(const tensor_table<sizeof...(Operands)>& table, const Visit& visit) {
    constexpr std::size_t size = group_size<Operands...>;
    constexpr std::uint64_t chunk_size = pass_chunk<InFlight, Operands...>;
    for (std::uint64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
        const auto& tensor = table.of_chunk(chunk);
        const std::uint64_t before = (chunk - tensor.first_chunk) * chunk_size;
        const std::uint64_t begin = ::min(tensor.head + before, tensor.size);
        const std::uint64_t end = ::min(begin + chunk_size, tensor.size);
        const auto groups = tensor.in_groups ? static_cast<unsigned>((end - begin) / size) : 0u;

        held<size, Operands...> parts[InFlight];
#pragma unroll
        for (unsigned i = 0; i < InFlight; ++i) {
            const unsigned group = threadIdx.x + i * pass_threads;
            if (group < groups) parts[i].read(tensor.data, begin + group * size);
        }
#pragma unroll
        for (unsigned i = 0; i < InFlight; ++i) {
            const unsigned group = threadIdx.x + i * pass_threads;
            if (group < groups) visit(parts[i], tensor, begin + group * size);
        }

        const auto head = before == 0 ? static_cast<unsigned>(begin) : 0u;
        const std::uint64_t tail = begin + groups * size;
        const auto singles = head + static_cast<unsigned>(end - tail);
        for (unsigned i = threadIdx.x; i < singles; i += pass_threads) {
            const std::uint64_t index = i < head ? i : tail + (i - head);
            held<1, Operands...> part;
            part.read(tensor.data, index);
            visit(part, tensor, index);
        }
    }
}

}  // namespace demi::inline DEMI_ABI::detail
