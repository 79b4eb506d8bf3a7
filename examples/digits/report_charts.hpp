// SPDX-License-Identifier: MIT
/// The four charts of the report.
#pragma once

#include "results.hpp"
#include "svg_chart.hpp"
#include "terminal.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace digits_demo {

/// Mean training loss of every epoch, first run of every policy, on a logarithmic axis.
inline std::string loss_chart(const std::vector<policy_result>& policies) {
    double low = 0;
    double high = 0;
    std::size_t epochs = 2;
    std::vector<std::vector<point>> lines;
    for (const auto& policy : policies) {
        auto& line = lines.emplace_back();
        double epoch = 0;
        for (const double loss : policy.runs.front().epoch_losses) {
            ++epoch;
            if (!std::isfinite(loss)) continue;
            line.push_back({epoch, std::log10(std::max(loss, 1e-6))});
            low = std::min(low, std::floor(line.back().y));
            high = std::max(high, std::ceil(line.back().y));
        }
        epochs = std::max(epochs, policy.runs.front().epoch_losses.size());
    }
    axis y{"training loss (mean cross-entropy)", low, high, {}, [](double value) {
               return fixed(std::pow(10.0, value), std::max(0, -static_cast<int>(value)));
           }};
    for (double tick = low; tick <= high; ++tick) y.ticks.push_back(tick);
    svg_chart chart(linear_axis("epoch", static_cast<double>(epochs)), y, "Training loss by epoch");
    for (std::size_t i = 0; i < policies.size(); ++i) chart.line(policies[i].name, lines[i]);
    return chart.finish();
}

/// Whether the loss scale of a policy is not simply 1.
inline bool has_loss_scale(const policy_result& policy) {
    const auto& steps = policy.runs.front().steps;
    return std::any_of(steps.begin(), steps.end(),
                       [](const step_record& step) { return step.loss_scale != 1.0f; });
}

/// The loss scale of every step of the first run, with the skipped steps marked.
inline std::string scale_chart(const std::vector<policy_result>& policies) {
    const auto exponent = [](const step_record& step) {
        return std::log2(static_cast<double>(step.loss_scale));
    };
    std::vector<const policy_result*> shown;
    double low = 1000;
    double high = -1000;
    std::size_t steps = 2;
    for (const auto& policy : policies) {
        if (!has_loss_scale(policy)) continue;
        shown.push_back(&policy);
        for (const auto& step : policy.runs.front().steps) {
            low = std::min(low, std::floor(exponent(step)) - 1);
            high = std::max(high, std::ceil(exponent(step)) + 1);
        }
        steps = std::max(steps, policy.runs.front().steps.size());
    }
    axis y{"loss scale", low, high, {}, [](double value) {
               return power_of_two(static_cast<int>(value));
           }};
    const double spacing = std::ceil((high - low) / 8);
    for (double tick = low; tick <= high; tick += spacing) y.ticks.push_back(tick);
    svg_chart chart(linear_axis("optimizer step", static_cast<double>(steps)), y,
                    "Loss scale by step, with skipped steps marked");
    for (const auto* policy : shown) {
        std::vector<point> line;
        for (const auto& step : policy->runs.front().steps) {
            line.push_back({static_cast<double>(line.size() + 1), exponent(step)});
        }
        chart.steps(policy->name, line);
        for (std::size_t i = 0; i < line.size(); ++i) {
            const auto& step = policy->runs.front().steps[i];
            if (!step.skipped) continue;
            chart.cross("skip", line[i],
                        "step " + std::to_string(i + 1) +
                            " skipped: gradients overflowed at loss scale " +
                            scale_text(step.loss_scale));
        }
    }
    return chart.finish();
}

/// Every trial of the planner: batch size against measured peak, with the budget as a line.
inline std::string planner_chart(const std::vector<policy_result>& policies) {
    double most_bytes = 0;
    double most_images = 1;
    for (const auto& policy : policies) {
        most_bytes = std::max(most_bytes, static_cast<double>(policy.certificate.budget));
        most_images = std::max(most_images, static_cast<double>(policy.certificate.size));
    }
    // Trials far beyond the answers would squeeze everything else into a corner.
    const double images_shown = 1.25 * most_images;
    const double bytes_shown = 1.3 * most_bytes;
    const bool large = most_bytes >= 0x1p21;
    svg_chart chart(linear_axis("images in the batch", images_shown),
                    linear_axis(large ? "peak memory, MiB" : "peak memory, KiB", bytes_shown,
                                large ? 0x1p20 : 0x1p10),
                    "Planner trials: peak memory by batch size against the budget");
    chart.threshold(most_bytes, "budget");
    // Marks that coincide lie on top of each other, the smaller ones last.
    double radius = 7;
    for (const auto& policy : policies) {
        const auto& certificate = policy.certificate;
        std::vector<point> fits;
        for (std::size_t i = 0; i < certificate.trials.size(); ++i) {
            const auto& trial = certificate.trials[i];
            const point at{static_cast<double>(trial.size), static_cast<double>(trial.bytes)};
            if (at.x > images_shown || at.y > bytes_shown) continue;
            const std::string text = policy.name + ", trial " + std::to_string(i + 1) + ": batch " +
                                     std::to_string(trial.size) + ", " + grouped(at.y) +
                                     " bytes, " + demi::describe(trial.verdict);
            if (trial.verdict == demi::trial_verdict::fit) {
                fits.push_back(at);
                chart.circle("fits " + policy.name, at, radius, text);
            } else {
                chart.cross(policy.name, at, text);
            }
        }
        std::sort(fits.begin(), fits.end(), [](point l, point r) { return l.x < r.x; });
        chart.line("thin " + policy.name, fits);
        const point answer{static_cast<double>(certificate.size),
                           static_cast<double>(certificate.peak)};
        chart.circle("ring " + policy.name, answer, radius + 5, policy.name + ": certified");
        if (policy.name == "full_float32" || policy.name == "mixed_float16") {
            chart.text("note", {answer.x, 0.84 * most_bytes},
                       std::to_string(certificate.size) + " images");
        }
        radius = std::max(2.0, radius - 1.5);
    }
    return chart.finish();
}

/// How large gradients are: their share per power of two, without and with the loss scale.
inline std::string magnitude_chart(const magnitude_histogram& gradients, float loss_scale) {
    constexpr int low = -56;
    constexpr int high = 28;
    constexpr int smallest_float16 = -24;
    constexpr int beyond_float16 = 16;
    const auto share = [&gradients](int exponent) {
        const bool counted =
            exponent >= magnitude_histogram::least && exponent <= magnitude_histogram::most;
        return counted ? 100 * static_cast<double>(gradients.count(exponent)) /
                             static_cast<double>(std::max<std::uint64_t>(gradients.total(), 1))
                       : 0;
    };
    double most = 1;
    for (int e = low; e <= high; ++e) most = std::max(most, share(e));
    axis x{"magnitude of a gradient value", low, high, {}, [](double value) {
               return power_of_two(static_cast<int>(value));
           }};
    for (int tick = low; tick <= high; tick += 8) x.ticks.push_back(tick);
    svg_chart chart(x, linear_axis("share of the values, %", 1.25 * most),
                    "Distribution of gradient magnitudes");
    chart.band("lost", low, smallest_float16, "too small for float16");
    chart.band("lost", beyond_float16, high, "too large");
    for (int e = low; e < high; ++e) {
        if (share(e) > 0) {
            chart.bar("bar", e, e + 1, share(e),
                      power_of_two(e) + ": " + fixed(share(e), 2) + " %");
        }
    }
    const int shift = std::ilogb(loss_scale);
    std::vector<point> scaled;
    for (int e = low; e < high; ++e) {
        scaled.push_back({static_cast<double>(e), share(e - shift)});
        scaled.push_back({static_cast<double>(e + 1), share(e - shift)});
    }
    if (shift != 0) chart.line("mixed_float16", scaled);
    return chart.finish();
}

}  // namespace digits_demo
