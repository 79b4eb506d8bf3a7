// SPDX-License-Identifier: MIT
/// The report: one HTML file without any other file, readable in light and dark.
#pragma once

#include "options.hpp"
#include "report_charts.hpp"
#include "results.hpp"
#include "terminal.hpp"

#include <algorithm>
#include <fstream>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace digits_demo {

namespace detail {

inline constexpr std::string_view page_head = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>demi: training on digits under four precision policies</title>
<style>
:root { color-scheme: light dark;
  --page: #ffffff; --ink: #1c2024; --soft: #5b646d; --rule: #dfe3e6; --lost: #f4e3df;
  --full_float32: #7b8790; --mixed_float16: #0b6bcb; --float16_unscaled: #c9480c;
  --mixed_bfloat16: #128260; --alarm: #c01533; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171a; --ink: #e6e9ec; --soft: #9aa4ad; --rule: #30363c; --lost: #3a2724;
  --full_float32: #98a4ad; --mixed_float16: #5aa9ff; --float16_unscaled: #ff8f5a;
  --mixed_bfloat16: #4cc79e; --alarm: #ff6b81; } }
body { margin: 0 auto; max-width: 860px; padding: 32px 20px 64px; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 8px; }
h2 { font-size: 19px; margin: 44px 0 4px; }
p { margin: 6px 0 10px; max-width: 72ch; }
.soft { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 15px; }
th, td { padding: 7px 10px; text-align: right; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
th { font-weight: 500; color: var(--soft); font-size: 13px; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
svg { width: 100%; height: auto; display: block; }
.grid { stroke: var(--rule); } .axis { stroke: var(--soft); }
.tick, .note { fill: var(--soft); font-size: 12px; }
.note { font-weight: 600; fill: var(--ink); }
.label { fill: var(--soft); font-size: 13px; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.line.full_float32 { stroke-width: 6; stroke-opacity: .45; }
.line.mixed_bfloat16 { stroke-dasharray: 7 5; }
.full_float32 { stroke: var(--full_float32); } .mixed_float16 { stroke: var(--mixed_float16); }
.float16_unscaled { stroke: var(--float16_unscaled); }
.mixed_bfloat16 { stroke: var(--mixed_bfloat16); }
.line.thin { stroke-width: 1; stroke-opacity: .5; stroke-dasharray: none; }
.fits { stroke: none; }
.fits.full_float32 { fill: var(--full_float32); } .fits.mixed_float16 { fill: var(--mixed_float16); }
.fits.float16_unscaled { fill: var(--float16_unscaled); }
.fits.mixed_bfloat16 { fill: var(--mixed_bfloat16); }
.ring { fill: none; stroke-width: 1.6; } .cross { fill: none; stroke-width: 2; }
.skip { stroke: var(--alarm); }
.threshold { stroke: var(--alarm); stroke-width: 1.5; stroke-dasharray: 5 4; }
.bar { fill: var(--full_float32); } .lost { fill: var(--lost); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 14px; color: var(--soft);
  margin: 8px 0; }
.legend svg { display: inline-block; width: 28px; height: 12px; vertical-align: middle;
  margin-right: 7px; }
code { font: 14px/1.4 ui-monospace, monospace; }
</style>
</head>
<body>
)";

inline std::string legend_line(const std::string& name, const std::string& text) {
    return "<span><svg viewBox='0 0 28 12'><line class='line " + name +
           "' x1='0' x2='28' y1='6' y2='6'/></svg>" + escaped(text) + "</span>";
}

inline std::string legend_of(const std::vector<policy_result>& policies) {
    std::string text = "<div class='legend'>";
    for (const auto& policy : policies) text += legend_line(policy.name, policy.name);
    return text;
}

inline void write_table(std::ostream& out, const std::vector<policy_result>& policies) {
    out << "<div class='scroll'><table><tr>";
    for (const auto name : column_names) out << "<th>" << name << "</th>";
    out << "</tr>\n";
    for (const auto& policy : policies) {
        out << "<tr>";
        for (const auto& cell : row_of(policy)) out << "<td>" << escaped(cell) << "</td>";
        out << "</tr>\n";
    }
    out << "</table></div>\n";
}

inline std::string certificate_text(const policy_result& policy) {
    const auto& found = policy.certificate;
    std::string text = policy.name + ": " + std::to_string(found.size) + " images ran in " +
                       grouped(static_cast<double>(found.peak)) + " bytes";
    if (found.failure) {
        text += "; " + std::to_string(found.failure->size) + " did not fit";
        if (found.failure->bytes != 0) {
            text += " (" + grouped(static_cast<double>(found.failure->bytes)) + " bytes)";
        }
    }
    std::size_t peak = 0;
    for (const auto& run : policy.runs) peak = std::max(peak, run.peak_bytes);
    return text + "; " + std::to_string(found.trials.size()) + " trials. Training used up to " +
           grouped(static_cast<double>(peak)) + " bytes.";
}

inline const policy_result* find_policy(const std::vector<policy_result>& policies,
                                        std::string_view name) {
    const auto found = std::find_if(policies.begin(), policies.end(),
                                    [&](const auto& policy) { return policy.name == name; });
    return found == policies.end() ? nullptr : &*found;
}

inline void write_magnitudes(std::ostream& out, const std::vector<policy_result>& policies) {
    const auto* single = find_policy(policies, "full_float32");
    if (!single || single->activation_gradients.total() == 0) return;
    const auto* mixed = find_policy(policies, "mixed_float16");
    const float scale = mixed ? mixed->runs.front().last_loss_scale : 1.0f;
    out << "<h2>Why float16 needs a loss scale</h2>\n<p>Gradients by the outputs of the layers in "
           "the float32 run, true values: "
        << fixed(100 * single->activation_gradients.share_below(-24), 1)
        << " % of those that are not 0 lie below 2⁻²⁴, the smallest float16. Multiplied "
           "by the loss scale that the run under mixed_float16 ended with, they move into its "
           "range.</p>\n<div class='legend'><span><svg viewBox='0 0 28 12'><rect class='bar' "
           "width='28' height='12'/></svg>true gradients</span>";
    if (mixed) out << legend_line("mixed_float16", "times the loss scale " + scale_text(scale));
    out << "</div>\n" << magnitude_chart(single->activation_gradients, scale);
}

}  // namespace detail

/// Writes the page to a stream.
inline void write_report(std::ostream& out, const options& chosen,
                         const std::vector<policy_result>& policies) {
    const auto legend = detail::legend_of(policies);
    out << detail::page_head
        << "<h1>Digits under several precision policies</h1>\n<p class='soft'>A network of 64, "
           "128, "
           "128 and 10 numbers with GELU, trained by AdamW on 1437 images of 8×8 pixels and tested "
           "on 360 others. "
        << chosen.epochs << " epochs, " << chosen.batch << " images per step, " << chosen.seeds
        << " seed(s), a memory budget of " << grouped(static_cast<double>(chosen.budget))
        << " bytes. The loss of each image has weight 1/"
        << grouped(static_cast<double>(chosen.mean_over))
        << ", its share in a mean over that many items.</p>\n";
    detail::write_table(out, policies);
    detail::write_magnitudes(out, policies);

    out << "<h2>Loss</h2>\n<p>First seed. Where a policy trains as float32 does, its line covers "
           "the broad grey one.</p>\n"
        << legend << "</div>\n"
        << loss_chart(policies);

    if (std::any_of(policies.begin(), policies.end(), has_loss_scale)) {
        out << "<h2>Loss scale</h2>\n<p>First seed, mixed_float16; the other policies train at 1. "
               "The scale grows after enough clean steps in a row. When it has become too large, a "
               "gradient overflows: that step is skipped, and the scale backs off.</p>\n"
               "<div class='legend'>"
            << detail::legend_line("mixed_float16", "loss scale")
            << "<span><svg viewBox='0 0 28 12'><path class='cross skip' d='M9 1 L19 11 M9 11 L19 "
               "1'/></svg>skipped step</span></div>\n"
            << scale_chart(policies);
    }

    out << "<h2>Largest batch in the budget</h2>\n<p>Each mark is one training step that the "
           "planner ran: it answers with a size that fitted, and the next one that did not. "
           "Policies "
           "with equally large formats need the same memory, and their marks coincide.</p>\n"
        << legend
        << "<span>● fitted</span><span>✕ did not fit</span><span>◯ certified</span></div>\n"
        << planner_chart(policies) << "<p class='soft'>";
    for (const auto& policy : policies)
        out << escaped(detail::certificate_text(policy)) << "<br>\n";
    out << "</p>\n</body>\n</html>\n";
}

}  // namespace digits_demo
