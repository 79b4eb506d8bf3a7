// SPDX-License-Identifier: MIT
/// The checked front door to a backend's element-wise pass.
#pragma once

#include <demi/core/backend.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace demi::inline DEMI_ABI {

namespace detail {

/// Throws when two tensors share some but not all of their memory: then the order in which a pass
/// visits the elements would show.
template <class A, class B>
void require_same_or_disjoint(std::string_view who, std::span<A> a, std::span<B> b,
                              std::size_t tensor) {
    const auto* a_first = reinterpret_cast<const std::byte*>(a.data());
    const auto* b_first = reinterpret_cast<const std::byte*>(b.data());
    const bool same = a_first == b_first && a.size_bytes() == b.size_bytes();
    const std::less<const std::byte*> before;
    const bool disjoint =
        !before(a_first, b_first + b.size_bytes()) || !before(b_first, a_first + a.size_bytes());
    if (!same && !disjoint) {
        raise(invalid_argument(message(who, ": tensor ", tensor,
                                       " of two operands overlaps in memory, expected the same "
                                       "memory or no common byte")));
    }
}

template <class First, class Other>
void require_compatible(std::string_view who, const First& first, const Other& other) {
    require_same_shape(who, "operand", other.tensors, "the first operand", first.tensors);
    if constexpr (First::mode != access::read || Other::mode != access::read) {
        for (std::size_t i = 0; i < first.tensors.size(); ++i) {
            require_same_or_disjoint(who, first.tensors[i], other.tensors[i], i);
        }
    }
}

/// Throws when two tensors of one list share memory: a pass would work on it twice, on two threads
/// at once perhaps.
template <class T>
void require_distinct(std::string_view who, std::string_view what, const tensor_list<T>& list) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (!list[i].empty()) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::less<const T*>()(list[a].data(), list[b].data());
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
        const auto [first, second] = std::minmax(order[i - 1], order[i]);
        if (std::less<const T*>()(list[order[i]].data(),
                                  list[order[i - 1]].data() + list[order[i - 1]].size())) {
            raise(invalid_argument(message(who, ": ", what, " tensors ", first, " and ", second,
                                           " overlap in memory, expected each tensor once")));
        }
    }
}

inline void require_operands(std::string_view) {}

/// Checks every pair of operands, tensor by tensor.
template <class First, class... Rest>
void require_operands(std::string_view who, const First& first, const Rest&... rest) {
    (require_compatible(who, first, rest), ...);
    require_operands(who, rest...);
}

}  // namespace detail

/// Calls `functor(values...)` for every element: `transform(where, functor, in(a), out(b))`.
///
/// Requires: operands of one shape whose tensors are the same memory or disjoint; see requirement 5
/// of `backend` for the functor. Throws `invalid_argument` otherwise, before anything is written.
/// Cost: one pass over the operands, one launch, no synchronisation; deterministic.
template <backend B, class Functor, class... Operands>
void transform(const B& where, const Functor& functor, const Operands&... operands) {
    detail::require_operands("transform", operands...);
    where.transform(functor, operands...);
}

}  // namespace demi::inline DEMI_ABI
