// SPDX-License-Identifier: MIT
/// What the copies of one `cuda_backend` share: stream, memory, workspace, tables and answers.
#pragma once

#include <demi/cuda/detail/answer_slots.hpp>
#include <demi/cuda/detail/table_cache.hpp>
#include <demi/cuda/memory.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace demi::inline DEMI_ABI {

/// What kernels of one's own need to run with a `cuda_backend`.
class cuda_context {
public:
    /// Throws `cuda_error` when there is no device, `out_of_memory`.
    cuda_context(cuda_stream_ref stream, std::shared_ptr<cuda_memory_resource> memory)
        : stream_(stream),
          device_(cuda_device::current()),
          memory_(std::move(memory)),
          workspace_(memory_, stream_, workspace_size) {}

    cuda_stream_ref stream() const noexcept { return stream_; }
    const cuda_device& device() const noexcept { return device_; }
    const std::shared_ptr<cuda_memory_resource>& memory() const noexcept { return memory_; }

    /// Device memory that any operation may use from its first launch to its last.
    void* workspace() const noexcept { return workspace_.data(); }
    static constexpr std::size_t workspace_size = std::size_t{128} * 1024;

    detail::answer_slots& answers() noexcept { return answers_; }
    detail::table_cache& tables() noexcept { return tables_; }

private:
    cuda_stream_ref stream_;
    cuda_device device_;
    std::shared_ptr<cuda_memory_resource> memory_;
    detail::cuda_block workspace_;
    detail::answer_slots answers_;
    detail::table_cache tables_;
};

}  // namespace demi::inline DEMI_ABI
