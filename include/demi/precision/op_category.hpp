// SPDX-License-Identifier: MIT
/// In which format a kind of operation runs under a policy.
#pragma once

#include <demi/precision/detail/policy_roles.hpp>
#include <demi/precision/format_traits.hpp>
#include <demi/precision/policy.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

// The categories follow the lists that PyTorch's autocast (CUDA) and Apex's O1 mode publish.

namespace demi::inline DEMI_ABI {

enum class op_category : std::uint8_t {
    low,      ///< in the compute format: products, which gain most and accumulate wider anyway
    single,   ///< in float: large dynamic range inside, or a long sum
    promote,  ///< in the widest format among the arguments
    refuse,   ///< not at all in a narrow format: it cannot be made safe
};

/// Kinds of operation. Yours joins by inheriting from one of the four category bases.
namespace op {

struct low {
    static constexpr auto category = op_category::low;
};
struct single {
    static constexpr auto category = op_category::single;
};
struct promote {
    static constexpr auto category = op_category::promote;
};
struct refuse {
    static constexpr auto category = op_category::refuse;
};

struct matmul : low {};
struct linear : low {};
struct einsum : low {};
struct convolution : low {};
struct convolution_transpose : low {};
struct attention : low {};  ///< scaled dot product, as one operation
struct recurrent_cell : low {};
struct prelu : low {};

struct exp : single {};
struct log : single {};
struct pow : single {};
struct reciprocal : single {};
struct rsqrt : single {};
struct softplus : single {};
struct trigonometric : single {};  ///< tan, sinh, cosh and the inverse functions
struct softmax : single {};
struct log_softmax : single {};
struct logsumexp : single {};
struct sum : single {};
struct prod : single {};
struct cumsum : single {};
struct cumprod : single {};
struct norm : single {};
struct layer_norm : single {};
struct group_norm : single {};
struct cosine_similarity : single {};
struct distance : single {};
struct interpolate : single {};
struct loss : single {};  ///< every loss but the one below
struct binary_cross_entropy_with_logits : loss {};

struct add : promote {};
struct subtract : promote {};
struct multiply : promote {};
struct divide : promote {};
struct compare : promote {};
struct concatenate : promote {};
struct stack : promote {};
struct addcmul : promote {};
struct addcdiv : promote {};
struct atan2 : promote {};
struct cross : promote {};
struct dot : promote {};
struct bilinear : promote {};
struct tensordot : promote {};
struct scatter_add : promote {};
struct grid_sample : promote {};

/// On probabilities: its logarithm and reciprocal leave the range of a narrow format.
struct binary_cross_entropy : refuse {};

}  // namespace op

/// A kind of operation: a type with a `category`.
template <class T>
concept operation = requires {
    { T::category } -> std::convertible_to<op_category>;
};

namespace detail {

/// Whether every value of `A` is a value of `B`.
template <class A, class B>
inline constexpr bool fits_in = format_traits<A>::exponent_bits <=
                                format_traits<B>::exponent_bits&& format_traits<A>::mantissa_bits <=
                                format_traits<B>::mantissa_bits;

template <class First, class... Rest>
struct widest {
    using type = First;
};

template <class First, class Second, class... Rest>
struct widest<First, Second, Rest...> {
    using pair = std::conditional_t<fits_in<Second, First>, First,
                                    std::conditional_t<fits_in<First, Second>, Second, float>>;
    using type = typename widest<pair, Rest...>::type;
};

template <class P, operation Op, class... Arguments>
constexpr auto find_precision() {
    using compute = typename policy_traits<P>::compute_type;
    using wide = at_least_float<compute>;
    if constexpr (Op::category == op_category::low) {
        return std::type_identity<compute>{};
    } else if constexpr (Op::category == op_category::promote) {
        static_assert(sizeof...(Arguments) > 0,
                      "demi: this operation runs in the widest format of its arguments; name their "
                      "types, as in precision_for<policy, op::add, A, B>");
        return std::type_identity<typename widest<Arguments...>::type>{};
    } else {
        static_assert(Op::category != op_category::refuse || fits_in<float, compute>,
                      "demi: this operation overflows in the compute format of the policy and is "
                      "refused; for binary_cross_entropy use binary_cross_entropy_with_logits, or "
                      "compute it in float outside the policy");
        return std::type_identity<wide>{};
    }
}

}  // namespace detail

/// The format in which operation `Op` runs under policy `P`.
///
/// Operations that promote need the types of their arguments; two formats of which neither contains
/// the other, such as float16 and bfloat16, promote to float. A refused operation does not compile
/// unless the policy computes in float.
template <precision_policy P, operation Op, floating_format... Arguments>
using precision_for =
    typename decltype(detail::find_precision<P, Op, std::remove_cv_t<Arguments>...>())::type;

}  // namespace demi::inline DEMI_ABI
