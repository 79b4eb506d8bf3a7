// SPDX-License-Identifier: MIT
/// The update-rule concept: an optimizer as a scalar function of one parameter.
#pragma once

#include <demi/core/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {

namespace detail {

template <class Rule>
constexpr std::size_t slot_count() {
    if constexpr (requires { Rule::slots; }) {
        return Rule::slots;
    } else {
        return 0;
    }
}

/// The function that a rule applies in the step with this number; the first step is 1.
template <class Rule>
DEMI_HD auto rule_at_step(const Rule& rule, std::uint64_t step) {
    if constexpr (requires { rule.at_step(step); }) {
        return rule.at_step(step);
    } else {
        return rule;
    }
}

template <class Function, class Real, class... Slots>
concept updates_with = std::invocable<const Function&, Real, Real&, Slots&...>;

template <class Function, class Real, std::size_t... Slots>
constexpr bool updates_with_slots(std::index_sequence<Slots...>) {
    return updates_with<Function, Real, decltype(Slots, std::declval<Real>())...>;
}

}  // namespace detail

/// An optimizer as a small value: settings, and a function of one parameter.
///
/// A model `R` is trivially copyable, so that it can be passed to a device, and provides
///
/// 1. `operator()(Real gradient, Real& weight, Real& slot...) const`, which gets the unscaled and
///    clipped gradient. As a template over `Real` it runs on packs of lanes at full width: it may
///    use arithmetic, comparisons, and `sqrt`, `abs`, `min`, `max`, `select` (see core/real.hpp).
///    As a function of `float` it works too, lane by lane. Where it bounds the gradient itself, to
///    `gradient_limit` in magnitude, a member of that name saves the bound of the clip.
/// 2. `static constexpr std::size_t slots`, the number of values it keeps for each parameter, 0 if
///    absent. They start at zero.
/// 3. Optional: `auto at_step(std::uint64_t step) const`, which gives the function of 1 for the
///    step with this number, counted from 1 and without skipped steps, for what is the same for all
///    parameters, such as a bias correction.
/// 4. Optional: `void validate() const`, which throws `invalid_argument` for settings out of
/// bounds.
template <class R>
concept update_rule = std::is_trivially_copyable_v<R> &&
    detail::updates_with_slots<decltype(detail::rule_at_step(std::declval<const R&>(), 1)), float>(
        std::make_index_sequence<detail::slot_count<R>()>());

}  // namespace demi::inline DEMI_ABI
