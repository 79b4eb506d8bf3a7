// SPDX-License-Identifier: MIT
/// A classifier of fully connected layers with GELU between them: forward and backward.
#pragma once

#include "linear.hpp"
#include "softmax_cross_entropy.hpp"
#include <demi/core/tensor.hpp>
#include <demi/kernels/transform.hpp>
#include <demi/precision/op_category.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace nn {

/// Examples in host memory: rows of features, in the format in which the network computes.
template <class T>
struct examples {
    std::span<const T> features;
    std::span<const std::uint8_t> labels;

    std::size_t size() const { return labels.size(); }
};

struct set_to_zero {
    template <class Real>
    DEMI_HD void operator()(Real& value) const {
        value = Real{};
    }
};

struct set_value_to_zero {
    double* value;

    DEMI_HD void operator()() const { *value = 0; }
};

/// The network, with all its state in the backend's memory.
///
/// Activations are kept from one micro-batch to the next, and grow to the largest one.
template <demi::precision_policy Policy, demi::backend Backend>
class mlp {
    using layer = linear<Policy, Backend>;
    using logit_type = demi::precision_for<Policy, demi::op::softmax>;

public:
    using compute_type = typename layer::compute_type;
    using gradient_type = typename layer::gradient_type;
    using batch = examples<compute_type>;

    /// `widths`: numbers in the input, in every hidden layer, and in the output.
    mlp(const Backend& where, const std::vector<std::size_t>& widths, std::uint64_t seed)
        : where_(where), widths_(widths) {
        std::mt19937_64 random(seed);
        for (std::size_t i = 1; i < widths.size(); ++i) {
            layers_.emplace_back(where_, widths[i - 1], widths[i], random);
        }
    }

    /// Adds the gradients of `scale` times the mean loss of the examples.
    void backward(const batch& micro, float scale) {
        const std::size_t rows = micro.size();
        activations& kept = load(micro);
        for (std::size_t i = 0; i < last(); ++i) {
            layers_[i].forward(input_of(i, rows), kept.after[i].first(rows),
                               demi::store(kept.before[i].first(rows)) | demi::gelu{});
        }
        layers_[last()].forward(input_of(last(), rows), kept.logits.first(rows));

        where_.invoke(softmax_cross_entropy<logit_type, gradient_type>{
            kept.logits.read(rows), kept.labels.data(), kept.gradients[last()].first(rows),
            loss_sum_.data(), scale / static_cast<float>(rows)});

        for (std::size_t i = last();; --i) {
            const auto gradient = kept.gradients[i].read(rows);
            layers_[i].accumulate_gradients(input_of(i, rows), gradient,
                                            {kept.ones.data(), 1, rows});
            if (i == 0) return;
            layers_[i].input_gradient(gradient, kept.gradients[i - 1].first(rows),
                                      demi::gelu_gradient(kept.before[i - 1].read(rows)));
        }
    }

    /// How many of the examples the network gets right. Waits for the backend.
    std::uint64_t count_correct(const batch& micro) {
        const std::size_t rows = micro.size();
        activations& kept = load(micro);
        for (std::size_t i = 0; i < last(); ++i) {
            layers_[i].forward(input_of(i, rows), kept.after[i].first(rows), demi::gelu{});
        }
        layers_[last()].forward(input_of(last(), rows), kept.logits.first(rows));

        auto correct = where_.template make_buffer<std::uint64_t>(1);
        where_.invoke(count_labels_found<logit_type>{kept.logits.read(rows), kept.labels.data(),
                                                     correct.data()});
        return where_.read(correct.data()).get();
    }

    /// The sum of the losses in `backward` since the last call. Waits for the backend.
    double take_loss_sum() {
        const double sum = where_.read(loss_sum_.data()).get();
        where_.invoke(set_value_to_zero{loss_sum_.data()});
        return sum;
    }

    /// Weights and biases, layer by layer.
    demi::tensor_list<compute_type> parameters() {
        demi::tensor_list<compute_type> list;
        for (auto& each : layers_) {
            const auto weights = each.weights();
            const auto bias = each.bias();
            list.add(weights);
            list.add(bias);
        }
        return list;
    }

    /// Their gradients, in the same order.
    demi::tensor_list<gradient_type> gradients() {
        demi::tensor_list<gradient_type> list;
        for (auto& each : layers_) {
            const auto weights = each.weight_gradients();
            const auto bias = each.bias_gradients();
            list.add(weights);
            list.add(bias);
        }
        return list;
    }

    void zero_gradients() { demi::transform(where_, set_to_zero{}, demi::out(gradients())); }

    /// The gradients by x W + b of every layer, as `backward` left them for its micro-batch.
    demi::tensor_list<gradient_type> activation_gradients() {
        demi::tensor_list<gradient_type> list;
        if (!kept_) return list;
        for (std::size_t i = 0; i <= last(); ++i) {
            const auto all = kept_->gradients[i].elements();
            const auto used = all.first(kept_->used_rows * layers_[i].outputs());
            list.add(used);
        }
        return list;
    }

    void release_activations() { kept_.reset(); }

private:
    template <class T>
    using rows_of = matrix<T, Backend>;

    /// What the forward pass leaves for the backward pass, and the gradients on their way back.
    struct activations {
        activations(const Backend& where, const std::vector<std::size_t>& widths,
                    std::size_t capacity)
            : rows(capacity),
              input(where, rows, widths.front()),
              labels(where, rows, 1),
              ones(where, 1, rows),
              logits(where, rows, widths.back()) {
            for (std::size_t i = 1; i < widths.size(); ++i) {
                gradients.emplace_back(where, rows, widths[i]);
                if (i + 1 == widths.size()) break;
                before.emplace_back(where, rows, widths[i]);
                after.emplace_back(where, rows, widths[i]);
            }
            const std::vector<compute_type> one(rows, demi::convert<compute_type>(1.0f));
            Backend(where).upload(one.data(), ones.data(), rows);
        }

        std::size_t rows;
        std::size_t used_rows = 0;
        rows_of<compute_type> input;
        rows_of<std::uint8_t> labels;
        rows_of<compute_type> ones;
        rows_of<logit_type> logits;
        std::vector<rows_of<compute_type>> before;  ///< of each hidden layer, before GELU
        std::vector<rows_of<compute_type>> after;   ///< and after it
        std::vector<rows_of<gradient_type>> gradients;
    };

    std::size_t last() const { return layers_.size() - 1; }

    demi::matrix_view<const compute_type> input_of(std::size_t layer_index, std::size_t rows) {
        return layer_index == 0 ? kept_->input.read(rows)
                                : kept_->after[layer_index - 1].read(rows);
    }

    /// Copies the examples to the backend, where there is room for them from now on.
    activations& load(const batch& micro) {
        if (!kept_ || kept_->rows < micro.size()) {
            kept_.reset();
            kept_.emplace(where_, widths_, micro.size());
        }
        kept_->used_rows = micro.size();
        where_.upload(micro.features.data(), kept_->input.data(), micro.features.size());
        where_.upload(micro.labels.data(), kept_->labels.data(), micro.labels.size());
        return *kept_;
    }

    Backend where_;
    std::vector<std::size_t> widths_;
    std::vector<layer> layers_;
    std::optional<activations> kept_;
    typename Backend::template buffer<double> loss_sum_ = where_.template make_buffer<double>(1);
};

}  // namespace nn
