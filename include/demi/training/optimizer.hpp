// SPDX-License-Identifier: MIT
/// The optimizer step: check, unscale, clip, update, cast to the compute format, move the scale.
#pragma once

#include <demi/kernels/cast.hpp>
#include <demi/precision/policy.hpp>
#include <demi/scaling/loss_scaler.hpp>
#include <demi/training/accumulation.hpp>
#include <demi/training/clip.hpp>
#include <demi/training/optimizer_state.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace demi::inline DEMI_ABI {

/// Updates parameters by `Rule` under the formats of `Policy`.
///
/// A step reads the gradients twice and writes them never: one pass learns whether they are finite
/// and their norm, one pass unscales, clips, updates weights and slots, and writes the compute
/// copy. A gradient that is not finite leaves every weight and slot as it was.
template <update_rule Rule, precision_policy Policy = full_float32, class Backend = host_backend>
class optimizer {
    static_assert(backend<Backend>);
    using traits = policy_traits<Policy>;
    using state_type = optimizer_state<Policy, detail::slot_count<Rule>(), Backend>;

public:
    using param_type = typename traits::param_type;
    using compute_type = typename traits::compute_type;
    using slot_type = typename traits::state_type;
    using deferred_report = typename Backend::template deferred<step_report>;

    /// Takes the parameters of an engine, which keeps their memory, and must keep it in place.
    ///
    /// Parameters in the policy's compute format get master weights in its param format, owned by
    /// the optimizer and started from their values; `step` writes both. Parameters in the param
    /// format are the master weights themselves.
    /// Throws `invalid_argument` for no tensors or settings out of bounds, `out_of_memory`.
    template <tensor_source Parameters>
    optimizer(const Backend& where, const Rule& rule, Parameters&& parameters)
        : rule_(checked(rule)), state_(where, tensor_list<element_of<Parameters>>(parameters)) {
        static_assert(std::same_as<element_of<Parameters>, param_type> ||
                          std::same_as<element_of<Parameters>, compute_type>,
                      "the parameters must be mutable tensors of the policy's compute_type or "
                      "param_type");
    }

    /// Takes an engine's own master weights and the compute copy that `step` writes with them.
    template <tensor_source Masters, tensor_source Computes>
    optimizer(const Backend& where, const Rule& rule, Masters&& masters, Computes&& computes)
        : rule_(checked(rule)),
          state_(where, tensor_list<param_type>(masters), tensor_list<compute_type>(computes)) {}

    /// One step with scaled gradients, which closes the step of the scaler too.
    ///
    /// Gradients that went through `loss_scaler::unscale` are used as they are. They are the
    /// caller's to clear, after a skipped step as well.
    /// Returns the outcome; only its `get()` waits for the backend.
    /// Throws `invalid_argument` when the gradients do not match the parameters.
    /// Cost: two passes, no synchronisation; the same bits for any number of threads.
    template <tensor_source Gradients, loss_scale_rule ScaleRule, gradient_clip Clip = no_clip>
    deferred_report step(Gradients&& gradients, loss_scaler<Backend, ScaleRule>& scaler,
                         const Clip& clip = {}) {
        return step_of_items(gradients, scaler, clip, 1);
    }

    /// The same for gradients of a sum of losses over the items of a window, which is then reset.
    template <tensor_source Gradients, loss_scale_rule ScaleRule, gradient_clip Clip>
    deferred_report step(Gradients&& gradients, loss_scaler<Backend, ScaleRule>& scaler,
                         const Clip& clip, accumulation_window& window) {
        if (window.empty()) {
            detail::raise(invalid_argument(
                "optimizer: step of an accumulation window of 0 items, expected at least 1"));
        }
        auto report = step_of_items(gradients, scaler, clip, window.items());
        window.reset();
        return report;
    }

    /// One step with gradients that were never scaled; for policies that need no loss scale.
    template <tensor_source Gradients, gradient_clip Clip = no_clip>
    deferred_report step(Gradients&& gradients, const Clip& clip = {}) {
        static_assert(!traits::needs_loss_scale,
                      "this policy loses small gradients without a loss scale: pass a loss_scaler, "
                      "or one with no_loss_scale to train without");
        return step(gradients, unscaled_, clip);
    }

    /// The settings of the rule, to be changed between steps, for example by a schedule.
    Rule& rule() noexcept { return rule_; }
    const Rule& rule() const noexcept { return rule_; }

    /// Steps taken, without the skipped ones. Cost: waits for the backend.
    std::uint64_t steps() const { return state_.steps(); }

    /// The weights in the param format; call `weights_changed` after writing to them.
    const tensor_list<param_type>& master_weights() const noexcept { return state_.weights(); }

    /// Writes the compute copy anew from the master weights.
    void weights_changed() { state_.write_compute_copy(); }

    /// Seeds the stochastic rounding of weights, for policies that round so; 0 unless called.
    void set_rounding_seed(std::uint64_t seed) noexcept { state_.set_rounding_seed(seed); }

    /// One of the rule's values per parameter.
    const tensor_list<slot_type>& slot(std::size_t index) const { return state_.slot(index); }

    /// Stores steps, weights and slots under names that begin with `name`.
    void save(checkpoint& into, const std::string& name) const { state_.save(into, name); }

    /// Resumes; the next step gives the same bits as in the run that saved.
    /// Throws `bad_checkpoint`, with nothing changed, unless everything is there and fits.
    void load(const checkpoint& from, const std::string& name) { state_.load(from, name); }

private:
    static const Rule& checked(const Rule& rule) {
        if constexpr (requires { rule.validate(); }) rule.validate();
        return rule;
    }

    template <class Gradients, loss_scale_rule ScaleRule, gradient_clip Clip>
    deferred_report step_of_items(Gradients& gradients, loss_scaler<Backend, ScaleRule>& scaler,
                                  const Clip& clip, std::uint64_t items) {
        using gradient = const std::remove_const_t<element_of<Gradients&>>;
        static_assert(floating_format<gradient>);
        checked(rule_);
        clip.validate();
        const tensor_list<gradient> list(gradients);
        state_.require_gradients(list);

        auto& where = state_.where();
        detail::step_record* record = state_.record();
        where.reduce(&record->statistics, gradient_reducer{}, in(list));
        where.invoke(
            detail::make_decide_step(scaler.view(), clip, record, scaler.unscaled(), items));
        state_.update(rule_, list);
        scaler.mark_closed();
        return where.read(&record->report);
    }

    Rule rule_;
    state_type state_;
    loss_scaler<Backend, no_loss_scale> unscaled_{state_.where()};
};

}  // namespace demi::inline DEMI_ABI
