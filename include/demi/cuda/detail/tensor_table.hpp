// SPDX-License-Identifier: MIT
/// The tensors of a pass as a kernel sees them: where they are, and how they are cut into chunks.
#pragma once

#include <demi/cuda/context.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace demi::inline DEMI_ABI::detail {

/// One tensor of each of `Count` operands.
template <std::size_t Count>
struct table_entry {
    std::uint64_t first_chunk;
    std::uint64_t size;
    std::uint32_t tensor;  ///< its place in the list, and in the table
    std::uint16_t head;    ///< elements before the first whole group
    std::uint16_t in_groups;
    void* data[Count];
};

/// A kernel parameter. Few tensors travel in it; of more, it says where on the device they are.
template <std::size_t Count>
struct tensor_table {
    using entry = table_entry<Count>;
    static constexpr std::size_t capacity = 3456 / sizeof(entry);

    std::uint64_t chunks = 0;
    std::uint32_t tensors = 0;
    const entry* far_entries = nullptr;
    entry near_entries[capacity];

    DEMI_HD const entry* entries() const {
        return far_entries != nullptr ? far_entries : near_entries;
    }

    /// One behind the last chunk of a tensor.
    DEMI_HD std::uint64_t end_of_chunks(std::uint32_t tensor) const {
        return tensor + 1 == tensors ? chunks : entries()[tensor + 1].first_chunk;
    }

    /// The tensor that a chunk belongs to, which is not before `from`.
    DEMI_HD std::uint32_t tensor_of_chunk(std::uint64_t chunk, std::uint32_t from) const {
        const entry* const all = entries();
        // Most chunks belong to a tensor of many.
        if (from + 1 == tensors || chunk < all[from + 1].first_chunk) return from;
        std::uint32_t tensor = from + 1;
        std::uint32_t count = tensors - tensor;
        while (count > 1) {
            const std::uint32_t half = count / 2;
            if (all[tensor + half].first_chunk <= chunk) {
                tensor += half;
                count -= half;
            } else {
                count = half;
            }
        }
        return tensor;
    }
};

/// How many elements to skip until all operands stand at a multiple of their group, if there is
/// such a place. `group` and `sizes` are powers of two.
template <std::size_t Count>
bool find_common_head(const std::array<void*, Count>& data,
                      const std::array<std::size_t, Count>& sizes, std::size_t group,
                      std::uint16_t& head) {
    const auto bytes_past_group = [&](std::size_t i, std::size_t skip) {
        const auto address = reinterpret_cast<std::uintptr_t>(data[i]) + skip * sizes[i];
        return address & (group * sizes[i] - 1);
    };
    const std::size_t skip = (group - bytes_past_group(0, 0) / sizes[0]) & (group - 1);
    for (std::size_t i = 0; i < Count; ++i) {
        if (bytes_past_group(i, skip) != 0) return false;
    }
    head = static_cast<std::uint16_t>(skip);
    return true;
}

/// Lists the tensors. `group`: elements that a thread takes at once.
template <std::size_t Count, class... Operands>
tensor_table<Count> make_tensor_table(cuda_context& context, std::size_t group,
                                      std::size_t chunk_elements, const Operands&... operands) {
    using entry = table_entry<Count>;
    const std::array<std::size_t, Count> sizes{sizeof(typename Operands::element_type)...};
    const auto& first = std::get<0>(std::tie(operands...));
    tensor_table<Count> table;
    std::vector<entry> many;
    for (std::size_t i = 0; i < first.tensors.size(); ++i) {
        const std::size_t size = first.tensors[i].size();
        const std::array<void*, Count> data{
            const_cast<void*>(static_cast<const void*>(operands.tensors[i].data()))...};
        entry next{};
        next.first_chunk = table.chunks;
        next.size = size;
        next.tensor = static_cast<std::uint32_t>(i);
        next.in_groups = find_common_head(data, sizes, group, next.head);
        for (std::size_t j = 0; j < Count; ++j) next.data[j] = data[j];
        // A tensor that ends within its head is one chunk.
        const std::size_t after_head = size > next.head ? size - next.head : 1;
        if (size != 0) table.chunks += (after_head + chunk_elements - 1) / chunk_elements;
        if (table.tensors < table.capacity) table.near_entries[table.tensors] = next;
        if (table.tensors == table.capacity) {
            many.assign(table.near_entries, table.near_entries + table.capacity);
        }
        if (table.tensors >= table.capacity) many.push_back(next);
        ++table.tensors;
    }
    if (!many.empty()) {
        table.far_entries = static_cast<const entry*>(context.tables().find(
            many.data(), many.size() * sizeof(entry), context.stream(), context.memory()));
    }
    return table;
}

}  // namespace demi::inline DEMI_ABI::detail
