// SPDX-License-Identifier: MIT
/// What an optimizer keeps: weights, slots, the compute copy's place, and the step record.
#pragma once

#include <demi/kernels/cast.hpp>
#include <demi/precision/policy.hpp>
#include <demi/training/checkpoint.hpp>
#include <demi/training/tensor_storage.hpp>
#include <demi/training/update_pass.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {

/// The state of an optimizer with `Slots` values per parameter; see `optimizer`.
template <precision_policy Policy, std::size_t Slots, class Backend>
class optimizer_state {
    using traits = policy_traits<Policy>;

public:
    using param_type = typename traits::param_type;
    using compute_type = typename traits::compute_type;
    using slot_type = typename traits::state_type;

    /// Parameters in the compute format; the master weights are kept here.
    optimizer_state(const Backend& where, const tensor_list<compute_type>& parameters) requires(
        !std::same_as<compute_type, param_type>)
        : where_(where),
          own_masters_(where_, parameters),
          weights_(own_masters_.tensors()),
          computes_(parameters) {
        make_slots();
        demi::cast(where_, computes_, weights_);
    }

    /// Parameters in the param format, without a compute copy.
    optimizer_state(const Backend& where, const tensor_list<param_type>& parameters)
        : where_(where), weights_(parameters) {
        make_slots();
    }

    /// The engine's master weights and its compute copy of them; no copy is written where both are
    /// the same memory, as in a network under a policy of one format.
    optimizer_state(const Backend& where, const tensor_list<param_type>& masters,
                    const tensor_list<compute_type>& computes)
        : where_(where), weights_(masters) {
        detail::require_same_shape("optimizer", "compute copy", computes.spans(),
                                   "the master weights", weights_.spans());
        if (!same_memory(masters, computes)) computes_ = computes;
        make_slots();
        write_compute_copy();
    }

    Backend& where() noexcept { return where_; }
    detail::step_record* record() noexcept { return record_.data(); }
    const tensor_list<param_type>& weights() const noexcept { return weights_; }
    std::uint64_t steps() const { return where_.read(&record_.data()->steps).get(); }

    const tensor_list<slot_type>& slot(std::size_t index) const {
        if (index >= Slots) {
            detail::raise(invalid_argument(
                detail::message("optimizer: slot ", index, ", expected below ", Slots)));
        }
        return slots_[index].tensors();
    }

    void set_rounding_seed(std::uint64_t seed) noexcept { rounding_seed_ = seed; }

    void write_compute_copy() {
        if (!computes_.empty()) demi::cast(where_, weights_, computes_);
    }

    /// Throws `invalid_argument` for gradients that `update` would refuse, before anything is done.
    template <class Gradient>
    void require_gradients(const tensor_list<Gradient>& gradients) const {
        detail::require_same_shape("optimizer", "gradient", gradients.spans(), "the parameters",
                                   weights_.spans());
        detail::require_operands("optimizer", in(gradients), inout(weights_));
        if (!computes_.empty()) {
            detail::require_operands("optimizer", in(gradients), out(computes_));
        }
    }

    /// The second pass of a step, over gradients, weights, slots and the compute copy.
    template <class Rule, class Gradient>
    void update(const Rule& rule, const tensor_list<Gradient>& gradients) {
        update(rule, gradients, std::make_index_sequence<Slots>());
    }

    void save(checkpoint& into, const std::string& name) const {
        into.store(name + ".steps", steps());
        into.store(name + ".rounding_seed", rounding_seed_);
        detail::store_tensors(into, name + ".weights", where_, weights_);
        for (std::size_t i = 0; i < Slots; ++i) {
            detail::store_tensors(into, slot_name(name, i), where_, slots_[i].tensors());
        }
    }

    void load(const checkpoint& from, const std::string& name) {
        const auto steps = from.load<std::uint64_t>(name + ".steps");
        const auto seed = from.load<std::uint64_t>(name + ".rounding_seed");
        detail::check_tensors(from, name + ".weights", weights_);
        for (std::size_t i = 0; i < Slots; ++i) {
            detail::check_tensors(from, slot_name(name, i), slots_[i].tensors());
        }
        detail::load_tensors(from, name + ".weights", where_, weights_);
        for (std::size_t i = 0; i < Slots; ++i) {
            detail::load_tensors(from, slot_name(name, i), where_, slots_[i].tensors());
        }
        where_.upload(&steps, &record_.data()->steps, 1);
        rounding_seed_ = seed;
        write_compute_copy();
    }

private:
    static bool same_memory(const tensor_list<param_type>& masters,
                            const tensor_list<compute_type>& computes) {
        const auto same = [](const auto& master, const auto& compute) {
            return static_cast<const void*>(master.data()) ==
                   static_cast<const void*>(compute.data());
        };
        return std::equal(masters.begin(), masters.end(), computes.begin(), computes.end(), same);
    }

    static std::string slot_name(const std::string& name, std::size_t index) {
        return name + ".slot" + std::to_string(index);
    }

    void make_slots() {
        if (weights_.empty()) {
            detail::raise(invalid_argument("optimizer: 0 parameter tensors, expected at least 1"));
        }
        detail::require_distinct("optimizer", "parameter", weights_);
        detail::require_distinct("optimizer", "compute copy", computes_);
        for (auto& slot : slots_)
            slot = detail::tensor_storage<slot_type, Backend>(where_, weights_);
    }

    /// Whether the update itself may write the compute copy: it knows the weights before they are
    /// rounded, and the copy has to be the rounding of what is stored, for a resumed run has only
    /// that.
    template <class Gradient>
    static constexpr bool copy_is_fused = std::same_as<param_type, double> ||
                                          (std::same_as<param_type, float> &&
                                           !std::same_as<Gradient, double> &&
                                           !std::same_as<compute_type, double> &&
                                           !std::same_as<slot_type, double>);

    /// Rounding of the weights; a stochastic one draws anew in every step that is taken.
    auto weight_rounding() {
        using rounding = typename traits::param_rounding;
        if constexpr (std::same_as<rounding, stochastic>) {
            return stochastic_by_counter{rounding_seed_, &record_.data()->steps};
        } else {
            return rounding{};
        }
    }

    template <class Rule, class Gradient, std::size_t... Index>
    void update(const Rule& rule, const tensor_list<Gradient>& gradients,
                std::index_sequence<Index...>) {
        const detail::update_pass<Rule> pass{rule, record_.data()};
        if (computes_.empty() || !copy_is_fused<std::remove_const_t<Gradient>>) {
            demi::transform(where_, pass, in(gradients), inout(weights_, weight_rounding()),
                            inout(slots_[Index].tensors())...);
            write_compute_copy();
        } else {
            demi::transform(where_, detail::update_pass_with_copy<Rule>{pass}, in(gradients),
                            out(computes_), inout(weights_, weight_rounding()),
                            inout(slots_[Index].tensors())...);
        }
    }

    Backend where_;
    detail::tensor_storage<param_type, Backend> own_masters_;
    tensor_list<param_type> weights_;
    tensor_list<compute_type> computes_;
    std::array<detail::tensor_storage<slot_type, Backend>, Slots> slots_;
    typename Backend::template buffer<detail::step_record> record_ =
        where_.template make_buffer<detail::step_record>(1);
    std::uint64_t rounding_seed_ = 0;
};

}  // namespace demi::inline DEMI_ABI
