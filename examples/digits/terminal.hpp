// SPDX-License-Identifier: MIT
/// What the demo says on the terminal: a progress bar, and one table at the end.
#pragma once

#include "results.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace digits_demo {

/// One line on stderr that is drawn over and over, if stderr is a terminal; nothing otherwise.
class progress_bar {
public:
    explicit progress_bar(std::size_t total)
        : total_(total), visible_(isatty(fileno(stderr)) != 0) {}
    progress_bar(const progress_bar&) = delete;
    progress_bar& operator=(const progress_bar&) = delete;
    ~progress_bar() { clear(); }

    void advance(const std::string& what) {
        ++done_;
        if (!visible_) return;
        constexpr std::size_t width = 30;
        const std::size_t filled = std::min(width, done_ * width / total_);
        const std::string bar = std::string(filled, '#') + std::string(width - filled, '.');
        std::fprintf(stderr, "\r\033[K[%s] %3zu%%  %s", bar.c_str(), done_ * 100 / total_,
                     what.c_str());
        std::fflush(stderr);
    }

    void clear() {
        if (visible_) std::fputs("\r\033[K", stderr);
    }

private:
    std::size_t total_;
    std::size_t done_ = 0;
    bool visible_;
};

inline std::string fixed(double value, int decimals) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(decimals) << value;
    return text.str();
}

/// 123456 as "123 456".
inline std::string grouped(double value) {
    std::string text = fixed(value, 0);
    for (std::size_t at = text.size(); at > 3;) {
        at -= 3;
        text.insert(at, 1, ' ');
    }
    return text;
}

/// "2⁻²⁴" for -24.
inline std::string power_of_two(int exponent) {
    constexpr std::array<std::string_view, 10> raised = {"⁰", "¹", "²", "³", "⁴",
                                                         "⁵", "⁶", "⁷", "⁸", "⁹"};
    std::string text = exponent < 0 ? "2⁻" : "2";
    for (const char digit : std::to_string(std::abs(exponent))) {
        text += raised[static_cast<std::size_t>(digit - '0')];
    }
    return text;
}

/// A power of two by its exponent, anything else in full.
inline std::string scale_text(float scale) {
    int exponent = 0;
    const bool is_power = std::frexp(scale, &exponent) == 0.5f;
    if (is_power && exponent != 1) return power_of_two(exponent - 1);
    return fixed(static_cast<double>(scale), 0);
}

/// The columns of the results, for the terminal and for the report.
inline constexpr std::array<std::string_view, 7> column_names = {
    "policy",        "test accuracy %", "state B/parameter", "largest batch",
    "skipped steps", "last loss scale", "samples/s"};

inline std::array<std::string, 7> row_of(const policy_result& policy) {
    const auto accuracy = accuracy_of(policy);
    return {policy.name,
            fixed(100 * accuracy.mean, 2) + " ± " + fixed(100 * accuracy.deviation, 2),
            fixed(policy.state_bytes_per_parameter, 1),
            std::to_string(policy.certificate.size),
            std::to_string(skipped_steps(policy)) + " of " + std::to_string(all_steps(policy)),
            scale_text(policy.runs.back().last_loss_scale),
            grouped(samples_per_second(policy))};
}

/// Letters on the screen, of which UTF-8 may take more than one byte each.
inline std::size_t display_width(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

inline void print_table(std::ostream& out, const std::vector<policy_result>& policies) {
    std::vector<std::vector<std::string>> rows;
    rows.emplace_back(column_names.begin(), column_names.end());
    for (const auto& policy : policies) {
        const auto row = row_of(policy);
        rows.emplace_back(row.begin(), row.end());
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t c = 0; c < rows[r].size(); ++c) {
            std::size_t width = 0;
            for (const auto& row : rows) width = std::max(width, display_width(row[c]));
            const std::string padding(width - display_width(rows[r][c]), ' ');
            out << (c == 0 ? "" : "  ") << (c == 0 ? rows[r][c] + padding : padding + rows[r][c]);
        }
        out << '\n';
    }
}

}  // namespace digits_demo
