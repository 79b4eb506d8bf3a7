// SPDX-License-Identifier: MIT
/// How a tensor list takes part in a pass over memory: read, written, or both.
#pragma once

#include <demi/core/rounding.hpp>
#include <demi/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace demi::inline DEMI_ABI {

enum class access : std::uint8_t {
    read,    ///< the functor gets a value
    write,   ///< the functor gets a reference to a value that it must set; memory is not read
    update,  ///< the functor gets a reference to the value in memory, which is stored afterwards
};

/// One tensor list of a pass. Values are converted to the functor's number type on the way in, and
/// rounded to the list's format on the way out. Refers to the list: for use within one expression.
template <class T, access Access, list_rounding Rounding = nearest_even>
struct operand {
    using element_type = T;
    using rounding_type = Rounding;
    static constexpr access mode = Access;

    std::span<const std::span<T>> tensors;
    Rounding rounding{};
};

/// A list that a pass only reads.
template <class T>
auto in(const tensor_list<T>& list) {
    return operand<T, access::read>{list.spans()};
}

/// A list that a pass only writes.
template <class T, list_rounding Rounding = nearest_even>
    requires(!std::is_const_v<T>)
auto out(const tensor_list<T>& list, Rounding rounding = {}) {
    return operand<T, access::write, Rounding>{list.spans(), rounding};
}

/// A list that a pass reads and writes.
template <class T, list_rounding Rounding = nearest_even>
    requires(!std::is_const_v<T>)
auto inout(const tensor_list<T>& list, Rounding rounding = {}) {
    return operand<T, access::update, Rounding>{list.spans(), rounding};
}

/// The place of an element in a tensor list.
struct element_position {
    std::uint64_t tensor = 0;
    std::uint64_t index = 0;

    friend constexpr bool operator==(const element_position&, const element_position&) = default;
    /// Written out, for std::strong_ordering does not exist on a device.
    friend DEMI_HD constexpr bool operator<(const element_position& a, const element_position& b) {
        return a.tensor != b.tensor ? a.tensor < b.tensor : a.index < b.index;
    }
};

}  // namespace demi::inline DEMI_ABI
