// SPDX-License-Identifier: MIT
/// Conversion of tensors from one format to another.
#pragma once

#include <demi/kernels/transform.hpp>

#include <cstdint>
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

/// Whether two tensors have one size and no memory in common: then there is nothing to complain of,
/// and a short cast does not wait for checks of lists.
template <class From, class To>
bool are_apart(std::span<From> from, std::span<To> to) {
    const auto from_first = reinterpret_cast<std::uintptr_t>(from.data());
    const auto to_first = reinterpret_cast<std::uintptr_t>(to.data());
    return from.size() == to.size() &&
           (from_first + from.size_bytes() <= to_first || to_first + to.size_bytes() <= from_first);
}

template <backend B, class From, class To, class Rounding>
[[gnu::noinline]] void cast_with_checks(const B& where, std::span<From> from, std::span<To> to,
                                        Rounding rounding) {
    demi::transform(where, copy_value{}, one_tensor<access::read>(from),
                    one_tensor<access::write>(to, rounding));
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
        if (detail::are_apart(source, target)) {
            where.transform(detail::copy_value{}, detail::one_tensor<access::read>(source),
                            detail::one_tensor<access::write>(target, rounding));
        } else {
            detail::cast_with_checks(where, source, target, rounding);
        }
    } else {
        const tensor_list<source_element> source(from);
        const tensor_list<target_element> target(to);
        demi::transform(where, detail::copy_value{}, in(source), out(target, rounding));
    }
}

}  // namespace demi::inline DEMI_ABI
