// SPDX-License-Identifier: MIT
/// Elements in host memory from a memory resource.
#pragma once

#include <demi/core/error.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {

namespace detail {

inline constexpr std::size_t buffer_alignment = 64;

/// Allocates whole cache lines. Throws `out_of_memory` when the resource cannot.
inline void* allocate_bytes(std::pmr::memory_resource& memory, std::size_t bytes,
                            [[maybe_unused]] std::string_view who = "host_buffer") {
#if DEMI_EXCEPTIONS
    try {
        return memory.allocate(bytes, buffer_alignment);
    } catch (const std::bad_alloc&) {
        raise(out_of_memory(message(who, ": cannot allocate ", bytes, " bytes"), bytes));
    }
#else
    return memory.allocate(bytes, buffer_alignment);
#endif
}

}  // namespace detail

/// Owns `size()` elements that start as zero bytes, on a boundary of 64 bytes.
///
/// Movable; a moved-from buffer is empty. The resource must outlive the buffer.
template <class T>
class host_buffer {
    static_assert(std::is_trivially_copyable_v<T>, "a buffer's elements are bytes to a backend");
    static_assert(alignof(T) <= detail::buffer_alignment);

public:
    using value_type = T;

    host_buffer() = default;

    /// Allocates from `memory`. Throws `out_of_memory` when that is not possible; what else the
    /// resource throws comes through.
    explicit host_buffer(std::size_t count,
                         std::pmr::memory_resource* memory = std::pmr::get_default_resource())
        : memory_(memory), size_(count) {
        if (count == 0) return;
        constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 2 / sizeof(T);
        if (count > most) {
            detail::raise(
                out_of_memory(detail::message("host_buffer: ", count, " elements of ", sizeof(T),
                                              " bytes, expected at most ", most),
                              0));
        }
        data_ = static_cast<T*>(detail::allocate_bytes(*memory, count * sizeof(T)));
        std::memset(static_cast<void*>(data_), 0, count * sizeof(T));
    }

    host_buffer(host_buffer&& other) noexcept { swap(other); }
    host_buffer& operator=(host_buffer&& other) noexcept {
        host_buffer moved(std::move(other));
        swap(moved);
        return *this;
    }
    ~host_buffer() {
        if (data_ != nullptr) {
            memory_->deallocate(data_, size_ * sizeof(T), detail::buffer_alignment);
        }
    }

    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

private:
    void swap(host_buffer& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

    std::pmr::memory_resource* memory_ = nullptr;
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace demi::inline DEMI_ABI
