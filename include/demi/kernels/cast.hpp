// SPDX-License-Identifier: MIT
/// Conversion of tensors from one format to another.
#pragma once

#include <demi/kernels/transform.hpp>

namespace demi::inline DEMI_ABI {

namespace detail {

struct copy_value {
    template <class Real>
    DEMI_HD void operator()(Real from, Real& to) const {
        to = from;
    }
};

}  // namespace detail

/// Converts every tensor of `from` into the tensor of `to` at the same place in the list.
///
/// Values are rounded once. What is too large becomes infinity, or NaN in a format without one.
/// Throws `invalid_argument` when the shapes differ. Cost: one pass, no synchronisation.
template <backend B, tensor_source From, tensor_source To, list_rounding Rounding = nearest_even>
void cast(const B& where, From&& from, To&& to, Rounding rounding = {}) {
    const tensor_list<const std::remove_const_t<element_of<From>>> source(from);
    const tensor_list<element_of<To>> target(to);
    demi::transform(where, detail::copy_value{}, in(source), out(target, rounding));
}

}  // namespace demi::inline DEMI_ABI
