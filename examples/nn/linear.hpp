// SPDX-License-Identifier: MIT
/// A fully connected layer, y = x W + b, with one example per row of x.
#pragma once

#include "matrix.hpp"
#include <demi/kernels/gemm.hpp>
#include <demi/precision/policy.hpp>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace nn {

/// Weights and their gradients, in the formats that the policy names.
template <demi::precision_policy Policy, demi::backend Backend>
class linear {
    using traits = demi::policy_traits<Policy>;

public:
    using compute_type = typename traits::compute_type;
    using gradient_type = typename traits::gradient_type;

    /// Starts W with normally distributed numbers of variance 2 / inputs, and b with zeros.
    linear(const Backend& where, std::size_t inputs, std::size_t outputs, std::mt19937_64& random)
        : where_(where),
          inputs_(inputs),
          outputs_(outputs),
          weight_(where, inputs, outputs),
          bias_(where, 1, outputs),
          weight_gradient_(where, inputs, outputs),
          bias_gradient_(where, 1, outputs) {
        const double deviation = std::sqrt(2.0 / static_cast<double>(inputs));
        std::vector<compute_type> start(inputs * outputs);
        for (auto& value : start) {
            value = demi::convert<compute_type>(deviation * normal_number(random));
        }
        where_.upload(start.data(), weight_.data(), start.size());
    }

    /// y = then(x W + b): what follows the layer happens while the values are in registers.
    template <class Result, demi::epilogue Then = demi::no_epilogue>
    void forward(demi::matrix_view<const compute_type> x, demi::matrix_view<Result> y,
                 const Then& then = {}) {
        demi::gemm(where_, x, weight_.read(inputs_), y, {}, demi::bias(bias_.elements()) | then);
    }

    /// Adds to the gradients of W and b; `ones` is a row of as many ones as there are examples.
    void accumulate_gradients(demi::matrix_view<const compute_type> x,
                              demi::matrix_view<const gradient_type> y_gradient,
                              demi::matrix_view<const compute_type> ones) {
        demi::gemm(where_, demi::transposed(x), y_gradient, weight_gradient_.first(inputs_),
                   {.beta = 1});
        demi::gemm(where_, ones, y_gradient, bias_gradient_.first(1), {.beta = 1});
    }

    /// The gradient of x: then(dy W^T).
    template <demi::epilogue Then>
    void input_gradient(demi::matrix_view<const gradient_type> y_gradient,
                        demi::matrix_view<gradient_type> x_gradient, const Then& then) {
        demi::gemm(where_, y_gradient, demi::transposed(weight_.read(inputs_)), x_gradient, {},
                   then);
    }

    std::size_t outputs() const { return outputs_; }

    auto weights() { return weight_.elements(); }
    auto bias() { return bias_.elements(); }
    auto weight_gradients() { return weight_gradient_.elements(); }
    auto bias_gradients() { return bias_gradient_.elements(); }

private:
    /// By Box and Muller; unlike std::normal_distribution, nearly the same bits everywhere.
    static double normal_number(std::mt19937_64& random) {
        constexpr double two_pi = 6.283185307179586;
        const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
        const double radius = std::sqrt(-2 * std::log(uniform()));
        return radius * std::cos(two_pi * uniform());
    }

    Backend where_;
    std::size_t inputs_;
    std::size_t outputs_;
    matrix<compute_type, Backend> weight_;
    matrix<compute_type, Backend> bias_;
    matrix<gradient_type, Backend> weight_gradient_;
    matrix<gradient_type, Backend> bias_gradient_;
};

}  // namespace nn
