// SPDX-License-Identifier: MIT
/// No gradient that is not finite ever reaches a weight: rules, policies, formats, clip modes,
/// scalers and places of the bad value, by the thousand.
#include <demi/precision/convert.hpp>
#include <demi/training/adamw.hpp>
#include <demi/training/optimizer.hpp>
#include <demi/training/sgd.hpp>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <random>
#include <span>
#include <support/backends.hpp>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/random_values.hpp>
#include <vector>

namespace {

/// A user's rule for any number type.
struct momentum_of_signs {
    static constexpr std::size_t slots = 1;
    template <class Real>
    void operator()(Real gradient, Real& weight, Real& mean) const {
        using demi::select;
        const auto zero = static_cast<Real>(0.0f), rate = static_cast<Real>(0.0625f);
        mean = static_cast<Real>(0.5f) * (mean + gradient);
        weight = weight - select(mean > zero, rate, -rate);
    }
};

/// A user's rule that only knows float.
struct float_only {
    static constexpr std::size_t slots = 2;
    void operator()(float gradient, float& weight, float& count, float& sum) const {
        count += 1;
        sum += gradient;
        weight -= 0.0625f * sum / count;
    }
};

enum class clip_mode : std::uint8_t { none, norm, value };

/// Each kind of clipping behind one type, so that the steps need not be compiled for each.
struct any_clip {
    clip_mode mode;

    void validate() const {}
    float factor(double norm) const {
        return mode == clip_mode::norm ? demi::clip_by_global_norm{0.5f}.factor(norm)
                                       : demi::no_clip{}.factor(norm);
    }
    float limit() const {
        return mode == clip_mode::value ? demi::clip_by_value{0.25f}.limit()
                                        : demi::no_clip{}.limit();
    }
};

static_assert(demi::gradient_clip<any_clip>);

template <class T>
std::vector<std::vector<T>> values_of(const demi::tensor_list<T>& list) {
    std::vector<std::vector<T>> values;
    for (const auto tensor : list) values.emplace_back(tensor.begin(), tensor.end());
    return values;
}

struct outcome {
    std::size_t cases = 0;
    std::size_t changed = 0;       ///< weights, copy, slots, steps or gradients after a bad step
    std::size_t wrong_report = 0;  ///< tensor, index, kind, reason or counts
    std::size_t wrong_scale = 0;
    std::size_t stuck = 0;  ///< a good step after it was not applied, or left garbage

    bool operator==(const outcome&) const = default;

    friend std::ostream& operator<<(std::ostream& stream, const outcome& result) {
        return stream << result.cases << " cases, changed " << result.changed << ", wrong report "
                      << result.wrong_report << ", wrong scale " << result.wrong_scale << ", stuck "
                      << result.stuck;
    }
};

/// One way to train, which is driven into one bad step after the other.
template <class Backend, class Policy, class Rule, class Gradient>
class bad_steps {
    using traits = demi::policy_traits<Policy>;
    using param = typename traits::param_type;
    using compute = typename traits::compute_type;
    using optimizer_type = demi::optimizer<Rule, Policy, Backend>;
    using gradients_type = std::vector<std::vector<Gradient>>;
    static constexpr std::size_t slots = Rule::slots;
    static constexpr bool unscales_in_place = demi::format_traits<Gradient>::exponent_bits >= 8;

public:
    bad_steps(std::uint64_t seed, outcome& result) : random_(seed), result_(result) {}

    void run(std::size_t rounds) {
        for (std::size_t round = 0; round < rounds; ++round) {
            switch (random_() % 4) {
                case 0:
                    with_scaler(demi::static_loss_scale{64.0f});
                    break;
                case 1:
                    with_scaler(demi::no_loss_scale{});
                    break;
                case 2:
                    with_scaler(demi::dynamic_loss_scale{.initial_scale = 256.0f});
                    break;
                default:
                    with_scaler(demi::dynamic_loss_scale{.initial_scale = 0.125f});
            }
        }
    }

private:
    struct snapshot {
        std::vector<std::vector<compute>> computes;
        std::vector<std::vector<param>> masters;
        std::vector<std::vector<std::vector<typename traits::state_type>>> slots;
        std::uint64_t steps;
    };

    snapshot take(const optimizer_type& optimizer) const {
        snapshot now{computes_, values_of(optimizer.master_weights()), {}, optimizer.steps()};
        for (std::size_t i = 0; i < slots; ++i) now.slots.push_back(values_of(optimizer.slot(i)));
        return now;
    }

    static bool same(const snapshot& a, const snapshot& b) {
        return all_same(a.computes, b.computes) && all_same(a.masters, b.masters) &&
               all_same(a.slots, b.slots) && a.steps == b.steps;
    }
    template <class T>
    static bool all_same(const std::vector<T>& a, const std::vector<T>& b) {
        if (a.size() != b.size()) return false;
        for (std::size_t i = 0; i < a.size(); ++i) {
            if constexpr (requires { a[i][0][0]; }) {
                if (!all_same(a[i], b[i])) return false;
            } else if (!same_bits(a[i], b[i])) {
                return false;
            }
        }
        return true;
    }
    static bool all_finite(const snapshot& state) {
        for (const auto& tensor : state.masters) {
            for (const auto& value : tensor) {
                if (!demi::is_finite(value)) return false;
            }
        }
        for (const auto& slot : state.slots) {
            for (const auto& tensor : slot) {
                for (const auto& value : tensor) {
                    if (!demi::is_finite(value)) return false;
                }
            }
        }
        return true;
    }

    gradients_type good_gradients() {
        gradients_type gradients;
        for (const auto& tensor : computes_) {
            gradients.push_back(random_vector<Gradient>(random_, tensor.size(), -6, 3));
        }
        return gradients;
    }

    template <class ScaleRule>
    void with_scaler(const ScaleRule& rule) {
        computes_.clear();
        for (auto count = random_() % 4 + 1; count > 0; --count) {
            computes_.push_back(random_vector<compute>(random_, random_() % 40 + 1, -3, 2));
        }
        if (random_() % 3 == 0) computes_.emplace(computes_.begin());
        if (random_() % 3 == 0) computes_.emplace_back();

        const Backend where{};
        optimizer_type optimizer(where, Rule{}, computes_);
        demi::loss_scaler<Backend, ScaleRule> scaler(where, rule);
        for (auto count = random_() % 3; count > 0; --count) {
            step(optimizer, good_gradients(), scaler);
        }
        bad_step(optimizer, scaler);
    }

    template <class ScaleRule>
    void bad_step(optimizer_type& optimizer, demi::loss_scaler<Backend, ScaleRule>& scaler) {
        gradients_type gradients = good_gradients();
        demi::element_position first{~std::uint64_t{0}, 0};
        std::uint64_t nans = 0, infinities = 0;
        const bool overflows = unscales_in_place && scaler.scale() < 1.0f && random_() % 2 == 0;
        // Now and then a second one, to see that the first is named.
        for (auto count = random_() % 4 == 0 ? 2 : 1; count > 0; --count) {
            const demi::element_position at = somewhere(gradients);
            Gradient& value = gradients[at.tensor][at.index];
            if (!demi::is_finite(value)) continue;
            if (overflows) {
                value = demi::convert<Gradient>(3e38f);
                continue;
            }
            value = random_non_finite<Gradient>(random_);
            ++(demi::is_nan(value) ? nans : infinities);
            if (at < first) first = at;
        }
        const gradients_type gradients_before = gradients;
        const snapshot before = take(optimizer);
        const auto state = scaler.state();

        if constexpr (unscales_in_place) {
            if (random_() % 2 == 0) scaler.unscale(gradients);
        }
        const demi::step_report report = step(optimizer, gradients, scaler);

        ++result_.cases;
        result_.changed += !same(take(optimizer), before);
        result_.changed += !all_same(gradients, gradients_before);
        result_.wrong_report +=
            report.applied() || report.nan_count != nans || report.infinity_count != infinities ||
            report.skipped_steps != state.skipped_steps + 1 ||
            report.applied_steps != state.applied_steps || report.clip_factor != 1.0f;
        if (overflows) {
            result_.wrong_report += report.reason != demi::skip_reason::gradient_overflow;
        } else {
            result_.wrong_report += report.reason != demi::skip_reason::non_finite_gradient ||
                                    !(report.first_non_finite == first) ||
                                    report.first_kind != kind(gradients[first.tensor][first.index]);
        }
        const float next = scaler.rule().next(state.rule, true).scale;
        result_.wrong_scale += report.loss_scale != state.rule.scale ||
                               report.next_loss_scale != next || scaler.scale() != next;

        const auto applied = step(optimizer, good_gradients(), scaler);
        const snapshot after = take(optimizer);
        result_.stuck += !applied.applied() || after.steps != before.steps + 1 ||
                         all_same(after.slots, before.slots) || !all_finite(after);
    }

    template <class ScaleRule>
    demi::step_report step(optimizer_type& optimizer, const gradients_type& gradients,
                           demi::loss_scaler<Backend, ScaleRule>& scaler) {
        const auto mode = static_cast<clip_mode>(random_() % 3);
        return optimizer.step(gradients, scaler, any_clip{mode}).get();
    }

    /// The first element of all, the last one, or any.
    demi::element_position somewhere(const gradients_type& gradients) {
        std::vector<demi::element_position> all;
        for (std::size_t t = 0; t < gradients.size(); ++t) {
            for (std::size_t i = 0; i < gradients[t].size(); ++i) all.push_back({t, i});
        }
        const auto choice = random_() % 4;
        return choice == 0 ? all.front() : choice == 1 ? all.back() : all[random_() % all.size()];
    }

    static demi::non_finite kind(const Gradient& value) {
        if (demi::is_nan(value)) return demi::non_finite::nan;
        return (demi::to_bits(value) & demi::format_traits<Gradient>::sign_mask) != 0
                   ? demi::non_finite::minus_infinity
                   : demi::non_finite::plus_infinity;
    }

    std::mt19937_64 random_;
    outcome& result_;
    std::vector<std::vector<compute>> computes_;
};

template <class Backend, class Policy, class... Rules>
outcome with_rules(std::uint64_t seed) {
    using gradient = typename demi::policy_traits<Policy>::gradient_type;
    outcome result;
    (bad_steps<Backend, Policy, Rules, gradient>(seed++, result).run(600 / sizeof...(Rules)), ...);
    return result;
}

/// Every rule on the backend that is quick to compile.
template <class Policy>
outcome with_every_rule(std::uint64_t seed) {
    return with_rules<reference_backend, Policy, demi::sgd, demi::adamw, momentum_of_signs,
                      float_only>(seed);
}

/// What it looks like when nothing went wrong.
outcome clean(std::size_t cases) {
    outcome expected;
    expected.cases = cases;
    return expected;
}

}  // namespace

TEST_CASE("no bad gradient reaches a weight under any preset policy, rule, clip and scaler") {
    CHECK(with_every_rule<demi::full_float32>(100) == clean(600));
    CHECK(with_every_rule<demi::tf32>(200) == clean(600));
    CHECK(with_every_rule<demi::mixed_float16>(300) == clean(600));
    CHECK(with_every_rule<demi::mixed_bfloat16>(400) == clean(600));
    CHECK(with_every_rule<demi::pure_bfloat16>(500) == clean(600));
    CHECK(with_every_rule<demi::mixed_float8>(600) == clean(600));
}

TEMPLATE_TEST_CASE("nor when packs of lanes do the work, for each rule and each policy", "",
                   DEMI_TEST_BACKENDS) {
    using backend = TestType;
    CHECK(with_rules<backend, demi::full_float32, demi::sgd, demi::adamw, float_only>(100) ==
          clean(600));
    CHECK(with_rules<backend, demi::tf32, demi::adamw>(200) == clean(600));
    CHECK(with_rules<backend, demi::mixed_float16, demi::adamw, float_only>(300) == clean(600));
    CHECK(with_rules<backend, demi::mixed_bfloat16, momentum_of_signs>(400) == clean(600));
    CHECK(with_rules<backend, demi::pure_bfloat16, demi::adamw, momentum_of_signs>(500) ==
          clean(600));
    CHECK(with_rules<backend, demi::mixed_float8, demi::sgd>(600) == clean(600));
}

TEMPLATE_TEST_CASE("nor when gradients are kept in another format than the policy's", "",
                   DEMI_TEST_BACKENDS) {
    outcome result;
    bad_steps<TestType, demi::mixed_float16, demi::adamw, float>(700, result).run(300);
    bad_steps<TestType, demi::full_float32, demi::sgd, demi::float8_e4m3>(800, result).run(300);
    CHECK(result == clean(600));
}
