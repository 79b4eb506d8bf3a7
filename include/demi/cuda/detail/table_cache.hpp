// SPDX-License-Identifier: MIT
/// Tables of tensors in device memory, for lists too long for the parameters of a kernel.
#pragma once

#include <demi/cuda/memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace demi::inline DEMI_ABI::detail {

/// Device copies of tables, found again by their content.
///
/// A table that a graph refers to is kept as long as the cache; of the others, the ones used
/// longest ago go first.
class table_cache {
public:
    /// Cost: a copy, which the host waits for, when the table is new; no work on the device later.
    const void* find(const void* table, std::size_t bytes, cuda_stream_ref stream,
                     const std::shared_ptr<cuda_memory_resource>& memory) {
        const auto* first = static_cast<const std::byte*>(table);
        const auto same = [&](const entry& known) {
            return known.content.size() == bytes &&
                   std::memcmp(known.content.data(), first, bytes) == 0;
        };
        auto found = std::find_if(entries_.begin(), entries_.end(), same);
        if (found == entries_.end()) {
            // What is freed during a capture would be freed by every replay.
            if (!stream.is_capturing()) drop_oldest();
            entries_.push_back(upload({first, first + bytes}, stream, memory));
            found = entries_.end() - 1;
        }
        found->last_use = ++uses_;
        found->in_a_graph = found->in_a_graph || stream.is_capturing();
        return found->device.data();
    }

private:
    static constexpr std::ptrdiff_t most_outside_graphs = 32;

    struct entry {
        std::vector<std::byte> content;
        cuda_block device;
        std::size_t last_use = 0;
        bool in_a_graph = false;
    };

    /// On a stream of its own: recorded into a graph, memory and copy would belong to the replays.
    static entry upload(std::vector<std::byte> content, cuda_stream_ref stream,
                        const std::shared_ptr<cuda_memory_resource>& memory) {
        const outside_capture allowed;
        const cuda_stream aside;
        cuda_block device(memory, aside, content.size());
        check_cuda(cudaMemcpyAsync(device.data(), content.data(), content.size(),
                                   cudaMemcpyHostToDevice, aside.get()),
                   "cudaMemcpyAsync");
        aside.synchronize();
        device.move_to(stream);
        return {std::move(content), std::move(device)};
    }

    void drop_oldest() {
        const auto outside = [](const entry& known) { return !known.in_a_graph; };
        if (std::count_if(entries_.begin(), entries_.end(), outside) < most_outside_graphs) return;
        auto oldest = std::find_if(entries_.begin(), entries_.end(), outside);
        for (auto known = oldest; known != entries_.end(); ++known) {
            if (outside(*known) && known->last_use < oldest->last_use) oldest = known;
        }
        // Freed in the order of the stream, behind the last kernel that reads it.
        entries_.erase(oldest);
    }

    std::vector<entry> entries_;
    std::size_t uses_ = 0;
};

}  // namespace demi::inline DEMI_ABI::detail
