// SPDX-License-Identifier: MIT
/// Conversion of tensors from one format to another.
#pragma once

#include <demi/kernels/transform.hpp>

#include <span>
#include <type_traits>

namespace demi::inline DEMI_ABI {

namespace detail {

/// A backend that knows `copies` may convert without calling this.
struct copy_value {
    static constexpr bool copies = true;

    template <class Real>
    DEMI_HD void operator()(Real from, Real& to) const {
        to = from;
    }
};

/// One tensor as an operand, without a list of its own.
template <access Access, class T, class Rounding = nearest_even>
operand<T, Access, Rounding> one_tensor(const std::span<T>& tensor, Rounding rounding = {}) {
    return {std::span<const std::span<T>>(&tensor, 1), rounding};
}

}  // namespace detail

/// Converts every tensor of `from` into the tensor of `to` at the same place in the list.
///
/// Values are rounded once. What is too large becomes infinity, or NaN in a format without one.
/// Throws `invalid_argument` when the shapes differ. Cost: one pass, no synchronisation.
template <backend B, tensor_source From, tensor_source To, list_rounding Rounding = nearest_even>
void cast(const B& where, From&& from, To&& to, Rounding rounding = {}) {
    using source_element = const std::remove_const_t<element_of<From>>;
    using target_element = element_of<To>;
    if constexpr (tensor<std::remove_reference_t<From>> && tensor<std::remove_reference_t<To>>) {
        const std::span<source_element> source = demi::view(from);
        const std::span<target_element> target = demi::view(to);
        demi::transform(where, detail::copy_value{}, detail::one_tensor<access::read>(source),
                        detail::one_tensor<access::write>(target, rounding));
    } else {
        const tensor_list<source_element> source(from);
        const tensor_list<target_element> target(to);
        demi::transform(where, detail::copy_value{}, in(source), out(target, rounding));
    }
}

}  // namespace demi::inline DEMI_ABI
