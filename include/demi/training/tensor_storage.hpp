// SPDX-License-Identifier: MIT
/// Tensors in the backend's memory with the shapes of a given list.
#pragma once

#include <demi/core/backend.hpp>

#include <cstddef>
#include <optional>
#include <span>

namespace demi::inline DEMI_ABI::detail {

/// Owns one block of zeros, cut into tensors of the same sizes as those of a list.
template <class T, class Backend>
class tensor_storage {
public:
    tensor_storage() = default;

    /// Throws `out_of_memory`.
    template <class Shape>
    tensor_storage(const Backend& where, const tensor_list<Shape>& shape) {
        std::size_t count = 0;
        for (const auto tensor : shape) count += aligned(tensor.size());
        Backend handle = where;
        block_.emplace(handle.template make_buffer<T>(count));
        T* next = block_->data();
        for (const auto tensor : shape) {
            std::span<T> elements(next, tensor.size());
            tensors_.add(elements);
            next += aligned(tensor.size());
        }
    }

    const tensor_list<T>& tensors() const noexcept { return tensors_; }

private:
    /// So that every tensor begins where vector loads like it.
    static constexpr std::size_t aligned(std::size_t count) {
        constexpr std::size_t step = 64 / sizeof(T);
        return (count + step - 1) / step * step;
    }

    std::optional<typename Backend::template buffer<T>> block_;
    tensor_list<T> tensors_;
};

}  // namespace demi::inline DEMI_ABI::detail
