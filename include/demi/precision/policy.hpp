// SPDX-License-Identifier: MIT
/// Precision policies: which format each role in training has.
#pragma once

#include <demi/core/rounding.hpp>
#include <demi/precision/bfloat16.hpp>
#include <demi/precision/detail/policy_roles.hpp>
#include <demi/precision/float16.hpp>
#include <demi/precision/float8.hpp>
#include <demi/precision/format_traits.hpp>

#include <concepts>
#include <cstddef>

namespace demi::inline DEMI_ABI {

/// A struct of type aliases that names the format of at least one role.
///
/// 1. Any of `param_type`, `compute_type`, `accumulate_type`, `output_type`, `gradient_type`,
///    `reduce_type` and `state_type`; each one that is there is a `floating_format`.
///    `policy_traits` says what the roles are and fills in the rest.
/// 2. Optional: `param_rounding`, one of `nearest_even`, `toward_zero`, `stochastic`.
/// 3. Optional: `static constexpr int matmul_mantissa_bits`.
///
/// To change a preset, inherit: `struct mine : mixed_float16 { using gradient_type = float; };`.
template <class P>
concept precision_policy = detail::names_a_format<P> && detail::roles_are_formats<P>;

/// How demi reads a policy: every role, given or filled in.
template <class P>
struct policy_traits {
    static_assert(detail::names_a_format<P>,
                  "demi: a precision policy must name the format of at least one role, for example "
                  "`using compute_type = demi::float16;`");
    static_assert(detail::roles_are_formats<P>,
                  "demi: a role of this precision policy is not a floating-point format "
                  "(specialise demi::format_traits for its type), or its param_rounding is not "
                  "nearest_even, toward_zero or stochastic");

    /// Activations and the inputs of matrix products; `float` unless given.
    using compute_type = typename detail::compute_role<P, float>::type;

private:
    using wide = detail::at_least_float<compute_type>;

public:
    /// The weights that the optimizer updates; `float` unless given.
    using param_type = typename detail::param_role<P, wide>::type;
    /// Sums inside matrix products and reductions; `float` unless given.
    using accumulate_type = typename detail::accumulate_role<P, wide>::type;
    /// What a layer hands to the next; the compute format unless given.
    using output_type = typename detail::output_role<P, compute_type>::type;
    /// Gradients in memory; the compute format unless given.
    using gradient_type = typename detail::gradient_role<P, compute_type>::type;
    /// Values summed over ranks; `float` unless given.
    using reduce_type = typename detail::reduce_role<P, wide>::type;
    /// The optimizer's slots, such as momentum; `float` unless given.
    using state_type = typename detail::state_role<P, wide>::type;

    /// How updated weights are rounded to `param_type`; to nearest even unless given.
    using param_rounding = typename detail::rounding_role<P, nearest_even>::type;

    /// Mantissa bits of the values that matrix products multiply; fewer than `compute_type` has for
    /// hardware that drops some, such as TF32.
    static constexpr int matmul_mantissa_bits =
        detail::matmul_mantissa_bits<P, format_traits<compute_type>::mantissa_bits>();

    /// Whether small gradients vanish without a loss scale: gradients pass through a format whose
    /// exponent range is narrower than that of float.
    static constexpr bool needs_loss_scale =
        format_traits<compute_type>::exponent_bits < format_traits<float>::exponent_bits ||
        format_traits<gradient_type>::exponent_bits < format_traits<float>::exponent_bits;

    /// Whether the weights exist twice: as `param_type` for the optimizer, as `compute_type` for
    /// the network.
    static constexpr bool has_master_weights = !same_format<param_type, compute_type>;

    /// Bytes of weights, gradient and optimizer slots for each parameter; activations not included.
    static constexpr std::size_t training_bytes_per_parameter(std::size_t slots) {
        return sizeof(param_type) + (has_master_weights ? sizeof(compute_type) : 0) +
               sizeof(gradient_type) + slots * sizeof(state_type);
    }
};

/// Everything in float: the pass-through twin of the mixed policies.
struct full_float32 {
    using compute_type = float;
};

/// float16 network, float weights; needs a loss scale.
struct mixed_float16 {
    using compute_type = float16;
};

/// bfloat16 network, float weights.
struct mixed_bfloat16 {
    using compute_type = bfloat16;
};

/// bfloat16 weights without a float copy, updated with stochastic rounding so that small updates
/// are not lost.
struct pure_bfloat16 {
    using compute_type = bfloat16;
    using param_type = bfloat16;
    using param_rounding = stochastic;
};

/// E4M3 forward, E5M2 backward, bfloat16 between layers, float weights; needs a loss scale.
struct mixed_float8 {
    using compute_type = float8_e4m3;
    using gradient_type = float8_e5m2;
    using output_type = bfloat16;
};

/// float in memory, TF32 inside matrix products.
struct tf32 {
    using compute_type = float;
    static constexpr int matmul_mantissa_bits = 10;
};

static_assert(precision_policy<full_float32>);
static_assert(precision_policy<mixed_float16>);
static_assert(precision_policy<mixed_bfloat16>);
static_assert(precision_policy<pure_bfloat16>);
static_assert(precision_policy<mixed_float8>);
static_assert(precision_policy<tf32>);

}  // namespace demi::inline DEMI_ABI
