// SPDX-License-Identifier: MIT
/// The concept of a loss scale rule: how a loss scale moves from step to step.
#pragma once

#include <demi/core/config.hpp>
#include <demi/core/error.hpp>
#include <demi/core/real.hpp>

#include <concepts>
#include <string_view>
#include <type_traits>

namespace demi::inline DEMI_ABI {

/// The bounds of every loss scale. Within them the scale and its inverse are normal floats, with a
/// factor of two to spare: an approximate reciprocal, or a flush of subnormals, cannot make 0 of
/// either.
inline constexpr float smallest_loss_scale = 0x1p-125f;
inline constexpr float largest_loss_scale = 0x1p125f;

/// A rule is a value that holds the settings of a loss scale; the state is another value, held by
/// whoever runs the rule.
///
/// 1. `Rule` and `Rule::state` are trivially copyable: both go to a device kernel as arguments, and
///    the state goes into a checkpoint. Every other member of the state has a fixed width and there
///    is no padding, so that a checkpoint reads the same everywhere.
/// 2. States are equality comparable: ranks compare theirs, and tests compare a resumed run.
/// 3. `state.scale` is a `float`, whatever the compute format: 2^16 does not fit float16.
/// 4. `rule.initial()` is the state before the first step.
/// 5. `rule.next(state, overflowed)` is the state after a step whose gradients were all finite
///    (false) or not (true). It is pure, touches no memory, cannot fail, and is callable on the
///    device (`DEMI_HD`, and constexpr in the models here): the device then updates its scale
///    without the host. From a state that `validate` accepts it never leaves
///    [`smallest_loss_scale`, `largest_loss_scale`].
/// 6. `rule.validate()` throws `invalid_argument` that names the first unusable setting; whoever
///    runs the rule calls it once, so that a rule can be an aggregate.
/// 7. `rule.validate(state)` throws `invalid_argument` that names the first member with a value the
///    rule cannot continue from. It is called on states that come from outside; every state that
///    the rule itself produced passes.
///
/// The smallest model is `no_loss_scale` in scaling/loss_scale.hpp.
template <class Rule>
concept loss_scale_rule = std::copyable<Rule> && std::is_trivially_copyable_v<Rule> &&
    std::copyable<typename Rule::state> && std::is_trivially_copyable_v<typename Rule::state> &&
    std::equality_comparable<typename Rule::state> &&
    requires(const Rule& rule, const typename Rule::state& now, bool overflowed) {
    { (now.scale) } -> std::same_as<const float&>;
    { rule.initial() }
    noexcept->std::same_as<typename Rule::state>;
    { rule.next(now, overflowed) }
    noexcept->std::same_as<typename Rule::state>;
    { rule.validate() } -> std::same_as<void>;
    { rule.validate(now) } -> std::same_as<void>;
};

namespace detail {

/// Whether low <= value <= high, for positive bounds. Decided on the bits, so that NaN, infinity,
/// zero and negative values are outside under any floating-point flags.
template <scalar_real Real>
constexpr bool is_within(Real value, std::type_identity_t<Real> low,
                         std::type_identity_t<Real> high) {
    using bits = typename real_traits<Real>::bits;
    const bits code = __builtin_bit_cast(bits, value);
    return __builtin_bit_cast(bits, low) <= code && code <= __builtin_bit_cast(bits, high);
}

/// Throws `invalid_argument` unless the condition holds.
template <class Number>
constexpr void require_value(bool condition, std::string_view who, std::string_view what,
                             Number value, std::string_view expectation) {
    if (!condition) {
        raise(
            invalid_argument(message(who, ": ", what, " is ", value, ", expected ", expectation)));
    }
}

/// Throws `invalid_argument` unless low <= value <= high.
constexpr void require_scale(std::string_view who, std::string_view what, float value,
                             float low = smallest_loss_scale, float high = largest_loss_scale) {
    if (!is_within(value, low, high)) {
        raise(invalid_argument(message(who, ": ", what, " is ", value, ", expected a number from ",
                                       low, " to ", high)));
    }
}

}  // namespace detail

}  // namespace demi::inline DEMI_ABI
