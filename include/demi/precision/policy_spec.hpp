// SPDX-License-Identifier: MIT
/// Policies as run-time values: parse, describe, and find the type.
#pragma once

#include <demi/core/error.hpp>
#include <demi/precision/detail/policy_text.hpp>
#include <demi/precision/dtype.hpp>
#include <demi/precision/policy.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace demi::inline DEMI_ABI {

/// The formats of a policy that are chosen at run time; the other roles come from the policy type.
struct policy_spec {
    dtype param = dtype::float32;
    dtype compute = dtype::float32;
    dtype output = dtype::float32;
    dtype gradient = dtype::float32;
    bool tf32 = false;  ///< float32 in memory, TF32 inside matrix products

    friend constexpr bool operator==(const policy_spec&, const policy_spec&) = default;
};

/// The run-time value of a policy.
template <precision_policy P>
constexpr policy_spec spec_of() {
    using traits = policy_traits<P>;
    using compute = typename traits::compute_type;
    return {dtype_of<typename traits::param_type>, dtype_of<compute>,
            dtype_of<typename traits::output_type>, dtype_of<typename traits::gradient_type>,
            traits::matmul_mantissa_bits < format_traits<compute>::mantissa_bits};
}

/// One line that `parse_policy` reads back, such as "p=float32,c=float16,o=float16"; the gradient
/// format is named where it differs from the compute format.
inline std::string describe(const policy_spec& spec) {
    std::string text = detail::message("p=", name_of(spec.param),
                                       ",c=", spec.tf32 ? "tf32" : name_of(spec.compute),
                                       ",o=", name_of(spec.output));
    if (spec.gradient != spec.compute) text += detail::message(",g=", name_of(spec.gradient));
    return text;
}

template <precision_policy P>
std::string describe() {
    return describe(spec_of<P>());
}

/// Reads a policy in one of three forms.
///
/// 1. The name of a preset, such as "mixed_float16".
/// 2. The name of a format, which all roles get.
/// 3. "p=...,c=...,o=...,g=..." for param, compute, output and gradient, each of them optional, in
///    any order, spaces allowed. Param is float32 unless given, compute follows param, output and
///    gradient follow compute. "c=tf32" means float32 with TF32 products.
///
/// Throws `invalid_argument` that names the offending part and what is accepted: for an empty text,
/// an unknown name or key, a key given twice.
inline policy_spec parse_policy(std::string_view text) {
    constexpr std::pair<std::string_view, policy_spec> presets[] = {
        {"full_float32", spec_of<full_float32>()},     {"mixed_float16", spec_of<mixed_float16>()},
        {"mixed_bfloat16", spec_of<mixed_bfloat16>()}, {"pure_bfloat16", spec_of<pure_bfloat16>()},
        {"mixed_float8", spec_of<mixed_float8>()},     {"tf32", spec_of<tf32>()},
    };
    constexpr std::string_view forms =
        "full_float32, mixed_float16, mixed_bfloat16, pure_bfloat16, mixed_float8, tf32, the name "
        "of a format, or p=...,c=...,o=...";

    text = detail::trimmed(text);
    if (text.empty()) {
        detail::raise(
            invalid_argument(detail::message("parse_policy: the text is empty, expected ", forms)));
    }
    for (const auto& [name, spec] : presets) {
        if (text == name) return spec;
    }
    if (text.find_first_of("=,") == std::string_view::npos) {
        const auto all = find_dtype(text);
        if (!all) {
            detail::raise(invalid_argument(
                detail::message("parse_policy: unknown policy \"", text, "\", expected ", forms)));
        }
        return {*all, *all, *all, *all};
    }

    const detail::policy_items items = detail::parse_policy_items(text);
    policy_spec spec;
    if (items.param) spec.param = parse_dtype(*items.param);
    spec.tf32 = items.compute == "tf32";
    spec.compute = spec.tf32 ? dtype::float32 : spec.param;
    if (items.compute && !spec.tf32) spec.compute = parse_dtype(*items.compute);
    spec.output = items.output ? parse_dtype(*items.output) : spec.compute;
    spec.gradient = items.gradient ? parse_dtype(*items.gradient) : spec.compute;
    return spec;
}

/// A policy whose layers, or its last one, hand out float.
template <precision_policy P>
struct with_float_output : P {
    using output_type = float;
};

/// Policies to choose from.
template <precision_policy... Policies>
struct policy_list {};

/// The presets, and the two mixed ones with float output.
using default_policies =
    policy_list<full_float32, mixed_float16, with_float_output<mixed_float16>, mixed_bfloat16,
                with_float_output<mixed_bfloat16>, pure_bfloat16, mixed_float8, tf32>;

namespace detail {

template <class Function, class First, class... Rest>
decltype(auto) visit_policies(policy_list<First, Rest...>, const policy_spec& spec, Function& fn,
                              std::string&& known) {
    if (spec == spec_of<First>()) return fn.template operator()<First>();
    known += message(known.empty() ? "" : " or ", describe<First>());
    if constexpr (sizeof...(Rest) > 0) {
        return visit_policies(policy_list<Rest...>{}, spec, fn, std::move(known));
    } else {
        raise(invalid_argument(
            message("visit_policy: no policy has ", describe(spec), ", expected ", known)));
    }
}

}  // namespace detail

/// Calls `fn.template operator()<P>()` with the first policy of the list that has these formats:
/// pass a lambda `[]<class P>() { ... }`. Returns what it returns, one type for all policies.
///
/// `fn` is compiled for every policy of the list; give your own, as in
/// `visit_policy<policy_list<full_float32, mine>>(spec, fn)`, to choose from fewer or from others.
/// Throws `invalid_argument` that names the formats of the list when none matches.
template <class Policies = default_policies, class Function>
decltype(auto) visit_policy(const policy_spec& spec, Function&& fn) {
    return detail::visit_policies(Policies{}, spec, fn, std::string());
}

}  // namespace demi::inline DEMI_ABI
