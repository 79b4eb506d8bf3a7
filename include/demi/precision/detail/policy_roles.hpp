// SPDX-License-Identifier: MIT
/// Reading the optional members of a precision policy.
#pragma once

#include <demi/core/rounding.hpp>
#include <demi/precision/format_traits.hpp>

#include <type_traits>

namespace demi::inline DEMI_ABI {
namespace detail {

/// The format of a role: the policy's member alias, or the default.
#define DEMI_DETAIL_ROLE(role, member)            \
    template <class P, class Default>             \
    struct role {                                 \
        using type = Default;                     \
        static constexpr bool given = false;      \
    };                                            \
    template <class P, class Default>             \
        requires requires { typename P::member; } \
    struct role<P, Default> {                     \
        using type = typename P::member;          \
        static constexpr bool given = true;       \
    };

DEMI_DETAIL_ROLE(param_role, param_type)
DEMI_DETAIL_ROLE(compute_role, compute_type)
DEMI_DETAIL_ROLE(accumulate_role, accumulate_type)
DEMI_DETAIL_ROLE(output_role, output_type)
DEMI_DETAIL_ROLE(gradient_role, gradient_type)
DEMI_DETAIL_ROLE(reduce_role, reduce_type)
DEMI_DETAIL_ROLE(state_role, state_type)
DEMI_DETAIL_ROLE(rounding_role, param_rounding)

#undef DEMI_DETAIL_ROLE

template <class P>
concept names_a_format = param_role<P, void>::given || compute_role<P, void>::given ||
    accumulate_role<P, void>::given || output_role<P, void>::given ||
    gradient_role<P, void>::given || reduce_role<P, void>::given || state_role<P, void>::given;

template <class P>
concept roles_are_formats = floating_format<typename param_role<P, float>::type> &&
    floating_format<typename compute_role<P, float>::type> &&
    floating_format<typename accumulate_role<P, float>::type> &&
    floating_format<typename output_role<P, float>::type> &&
    floating_format<typename gradient_role<P, float>::type> &&
    floating_format<typename reduce_role<P, float>::type> &&
    floating_format<typename state_role<P, float>::type> &&
    list_rounding<typename rounding_role<P, nearest_even>::type>;

template <class T>
using at_least_float =
    std::conditional_t<(format_traits<T>::mantissa_bits > format_traits<float>::mantissa_bits), T,
                       float>;

template <class P, int Default>
constexpr int matmul_mantissa_bits() {
    if constexpr (requires { P::matmul_mantissa_bits; }) {
        return P::matmul_mantissa_bits;
    } else {
        return Default;
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
