// SPDX-License-Identifier: MIT
/// A loss-scale rule and its state, living with a backend.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/kernels/gradient_statistics.hpp>
#include <demi/precision/format_traits.hpp>
#include <demi/scaling/detail/loss_scaler_tasks.hpp>
#include <demi/scaling/loss_scale.hpp>
#include <demi/scaling/loss_scaler_view.hpp>

#include <cstdint>

namespace demi::inline DEMI_ABI {

/// Scales a loss so that 16-bit gradients neither vanish nor overflow, and watches the outcome.
///
/// With `demi::optimizer` one call of `step` does everything. An engine with its own optimizer
/// calls, once per step and in this order, `unscale`, `step_is_safe`, `update`; or `discard` to
/// leave a step without a trace. Calls in another order throw `invalid_state`.
template <class Backend = host_backend, loss_scale_rule Rule = dynamic_loss_scale>
class loss_scaler {
    static_assert(backend<Backend>);
    using record = typename loss_scaler_view<Rule>::record;

public:
    using backend_type = Backend;
    using rule_type = Rule;
    using state_type = loss_scaler_state<Rule>;

    /// Throws `invalid_argument` when the settings of the rule are not usable.
    explicit loss_scaler(const Backend& where, const Rule& rule = {})
        : where_(where),
          rule_(rule),
          memory_((rule.validate(), where_.template make_buffer<record>(1))) {
        set({.rule = rule_.initial()});
    }

    /// The factor for a loss of this weight. Constant until the step is closed, so that every
    /// micro-batch of an accumulation window is scaled alike.
    /// Throws `invalid_argument` for a weight that is 0 or not finite. Cost: waits for the backend.
    float scale(float weight = 1.0f) const {
        if (!is_finite(weight) || weight == 0.0f) {
            detail::raise(invalid_argument(detail::message(
                "loss_scaler: weight of ", weight, ", expected a finite number other than 0")));
        }
        return where_.read(&memory_.data()->state.rule.scale).get() * weight;
    }

    /// Tells the scaler the unscaled loss of the step in progress. A loss that is not finite makes
    /// the step a skipped one and leaves the scale: backing off cannot mend a broken forward pass.
    void observe_loss(float loss) {
        where_.invoke(detail::note_loss<Rule>{view(), is_finite(loss)});
    }

    /// Divides gradients by the scale, in place, and learns whether all of them are finite.
    ///
    /// Several lists of different formats may be given; reports number their tensors on from list
    /// to list. Formats of a narrower exponent range than float are refused: unscaled they would
    /// underflow, which is what the scale is against; let `demi::optimizer` unscale them in
    /// registers instead.
    /// Effects: when any value is not finite, no gradient is changed.
    /// Throws `invalid_state` if called twice in a step, `invalid_argument` for no tensors.
    /// Cost: one read pass, then one read-write pass; no synchronisation.
    template <tensor_source... Gradients>
    void unscale(Gradients&&... gradients) {
        static_assert(sizeof...(Gradients) > 0, "unscale needs the gradients");
        static_assert(((format_traits<std::remove_const_t<element_of<Gradients>>>::exponent_bits >=
                        format_traits<float>::exponent_bits) &&
                       ...),
                      "gradients in this format underflow when unscaled in place: pass them scaled "
                      "to demi::optimizer, or cast them to float first");
        require_stage(stage::ready, "unscale");
        unscale_lists(tensor_list<element_of<Gradients>>(gradients)...);
        stage_ = stage::unscaled;
    }

    /// Whether the gradients given to `unscale` may be used. Cost: waits for the backend.
    bool step_is_safe() const {
        require_stage(stage::unscaled, "step_is_safe");
        record now = where_.read(memory_.data()).get();
        return loss_scaler_view<Rule>(rule_, &now).unscale_is_safe();
    }

    /// Ends a step whose gradients were unscaled: the scale moves by the rule.
    auto update() {
        require_stage(stage::unscaled, "update");
        where_.invoke(detail::close_step<Rule>{view(), report_.data()});
        stage_ = stage::ready;
        return where_.read(report_.data());
    }

    /// Leaves the step: forgets what was found, keeps the scale. The gradients are the caller's to
    /// clear. Allowed at any time.
    void discard() {
        where_.invoke(detail::forget_step<Rule>{view()});
        stage_ = stage::ready;
    }

    /// Whether `unscale` has been called in this step.
    bool unscaled() const noexcept { return stage_ == stage::unscaled; }

    const Rule& rule() const noexcept { return rule_; }

    /// Changes the settings of the rule from the next step on; the state stays.
    /// Throws `invalid_argument`, with nothing changed, when they are not usable.
    void set_rule(const Rule& rule) {
        rule.validate();
        rule_ = rule;
    }

    /// What device code and `demi::optimizer` work with.
    loss_scaler_view<Rule> view() { return {rule_, memory_.data()}; }

    /// Called by what closes a step through `view()`, such as `demi::optimizer`.
    void mark_closed() noexcept { stage_ = stage::ready; }

    /// The state to checkpoint, between steps. Throws `invalid_state` within one.
    state_type state() const {
        require_stage(stage::ready, "state");
        return where_.read(&memory_.data()->state).get();
    }

    /// Resumes from a state; throws `invalid_argument` and changes nothing when the rule cannot
    /// have made it.
    void restore(const state_type& state) {
        rule_.validate(state.rule);
        set(state);
        stage_ = stage::ready;
    }

private:
    enum class stage : std::uint8_t { ready, unscaled };

    void set(const state_type& state) {
        record fresh{};
        fresh.state = state;
        where_.upload(&fresh, memory_.data(), 1);
    }

    void require_stage(stage expected, const char* call) const {
        if (stage_ == expected) return;
        detail::raise(invalid_state(detail::message(
            "loss_scaler: ", call,
            stage_ == stage::ready ? " before unscale, expected unscale, then step_is_safe, update"
                                   : " after unscale, expected update or discard first")));
    }

    template <class... T>
    void unscale_lists(const tensor_list<T>&... lists) {
        if ((lists.size() + ...) == 0) {
            detail::raise(invalid_argument(
                "loss_scaler: unscale of 0 tensors, expected at least 1; discard() leaves a step "
                "without gradients"));
        }
        std::uint64_t first_tensor = 0;
        ((measure(lists, first_tensor), first_tensor += lists.size()), ...);
        (multiply(lists), ...);
    }

    template <class T>
    void measure(const tensor_list<T>& list, std::uint64_t first_tensor) {
        where_.reduce(statistics_.data(), gradient_reducer{},
                      operand<T, access::read>{list.spans()});
        where_.invoke(detail::note_gradients<Rule>{view(), statistics_.data(), first_tensor});
    }

    template <class T>
    void multiply(const tensor_list<T>& list) {
        where_.transform(detail::unscale_pass<Rule>{view()}, inout(list));
    }

    Backend where_;
    Rule rule_;
    typename Backend::template buffer<record> memory_;
    typename Backend::template buffer<gradient_statistics> statistics_ =
        where_.template make_buffer<gradient_statistics>(1);
    typename Backend::template buffer<step_report> report_ =
        where_.template make_buffer<step_report>(1);
    stage stage_ = stage::ready;
};

}  // namespace demi::inline DEMI_ABI
