// SPDX-License-Identifier: MIT
/// The loss of a classifier, and what it sends back: softmax and cross-entropy in one task.
#pragma once

#include <demi/core/matrix_view.hpp>
#include <demi/precision/convert.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace nn {

/// Adds the cross-entropy of every row to `*loss_sum`, and writes `scale` times its gradient by the
/// logits.
///
/// Everything is float or wider, the scale included; only the finished gradient is rounded to its
/// format, which is where values below the smallest number of the format are lost.
template <class Logit, class Gradient>
struct softmax_cross_entropy {
    demi::matrix_view<const Logit> logits;
    const std::uint8_t* labels;
    demi::matrix_view<Gradient> logits_gradient;
    double* loss_sum;
    float scale;

    DEMI_HD void operator()() const {
        for (std::size_t row = 0; row < logits.rows(); ++row) *loss_sum += one_row(row);
    }

private:
    DEMI_HD double one_row(std::size_t row) const {
        Logit largest = logits(row, 0);
        for (std::size_t i = 1; i < logits.columns(); ++i) {
            largest = largest < logits(row, i) ? logits(row, i) : largest;
        }
        Logit sum = 0;
        for (std::size_t i = 0; i < logits.columns(); ++i) {
            sum += std::exp(logits(row, i) - largest);
        }
        const std::size_t label = labels[row];
        for (std::size_t i = 0; i < logits.columns(); ++i) {
            const Logit probability = std::exp(logits(row, i) - largest) / sum;
            const Logit error = i == label ? probability - 1 : probability;
            logits_gradient(row, i) = demi::convert<Gradient>(error * static_cast<Logit>(scale));
        }
        return static_cast<double>(std::log(sum) + largest - logits(row, label));
    }
};

/// Counts the rows whose largest logit is at the label.
template <class Logit>
struct count_labels_found {
    demi::matrix_view<const Logit> logits;
    const std::uint8_t* labels;
    std::uint64_t* correct;

    DEMI_HD void operator()() const {
        for (std::size_t row = 0; row < logits.rows(); ++row) {
            std::size_t best = 0;
            for (std::size_t i = 1; i < logits.columns(); ++i) {
                if (logits(row, best) < logits(row, i)) best = i;
            }
            if (best == labels[row]) ++*correct;
        }
    }
};

}  // namespace nn
