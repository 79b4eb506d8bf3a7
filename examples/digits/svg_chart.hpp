// SPDX-License-Identifier: MIT
/// A chart as inline SVG: axes with ticks, lines, marks. Colours are the style sheet's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iomanip>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace digits_demo {

struct point {
    double x = 0;
    double y = 0;
};

/// One axis: its range, where its ticks are, and how they are labelled.
struct axis {
    std::string label;
    double low = 0;
    double high = 1;
    std::vector<double> ticks;
    std::function<std::string(double)> tick_label;
};

inline std::string escaped(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        if (c == '&')
            safe += "&amp;";
        else if (c == '<')
            safe += "&lt;";
        else if (c == '>')
            safe += "&gt;";
        else if (c == '"')
            safe += "&quot;";
        else
            safe += c;
    }
    return safe;
}

/// An axis from 0 with round ticks.
inline axis linear_axis(std::string label, double high, double unit = 1) {
    const double rough = high / unit / 6;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double step = (rough > 5 * power   ? 10
                         : rough > 2 * power ? 5
                         : rough > power     ? 2
                                             : 1) *
                        power;
    axis result{std::move(label), 0, high, {}, [unit](double value) {
                    std::ostringstream text;
                    text << value / unit;
                    return text.str();
                }};
    for (int i = 0; i * step * unit <= high * 1.0001; ++i) result.ticks.push_back(i * step * unit);
    return result;
}

/// Draws onto a canvas of fixed size; the browser scales it.
class svg_chart {
public:
    svg_chart(axis x, axis y, const std::string& description) : x_(std::move(x)), y_(std::move(y)) {
        out_ << std::fixed << std::setprecision(1);
        out_ << "<svg viewBox='0 0 " << width << ' ' << height << "' role='img' aria-label=\""
             << escaped(description) << "\">\n";
        for (const double tick : y_.ticks) {
            out_ << "<line class='grid' x1='" << left << "' x2='" << width - right << "' y1='"
                 << down(tick) << "' y2='" << down(tick) << "'/>"
                 << "<text class='tick' text-anchor='end' x='" << left - 8 << "' y='"
                 << down(tick) + 4 << "'>" << escaped(y_.tick_label(tick)) << "</text>\n";
        }
        for (const double tick : x_.ticks) {
            out_ << "<line class='grid' x1='" << across(tick) << "' x2='" << across(tick)
                 << "' y1='" << height - bottom << "' y2='" << height - bottom + 5 << "'/>"
                 << "<text class='tick' text-anchor='middle' x='" << across(tick) << "' y='"
                 << height - bottom + 19 << "'>" << escaped(x_.tick_label(tick)) << "</text>\n";
        }
        out_ << "<line class='axis' x1='" << left << "' x2='" << width - right << "' y1='"
             << height - bottom << "' y2='" << height - bottom << "'/>\n"
             << "<text class='label' text-anchor='middle' x='" << (left + width - right) / 2
             << "' y='" << height - 8 << "'>" << escaped(x_.label) << "</text>\n"
             << "<text class='label' text-anchor='middle' transform='translate(16 "
             << (top + height - bottom) / 2 << ") rotate(-90)'>" << escaped(y_.label)
             << "</text>\n";
    }

    /// A line through the points.
    void line(const std::string& css_class, const std::vector<point>& points) {
        out_ << "<polyline class='line " << css_class << "' points='";
        for (const auto& p : points) out_ << across(p.x) << ',' << down(p.y) << ' ';
        out_ << "'/>\n";
    }

    /// A line that keeps its height up to the next point.
    void steps(const std::string& css_class, const std::vector<point>& points) {
        std::vector<point> corners;
        for (const auto& p : points) {
            if (!corners.empty() && corners.back().y != p.y) {
                corners.push_back({p.x, corners.back().y});
            }
            corners.push_back(p);
        }
        line(css_class, corners);
    }

    void bar(const std::string& css_class, double from, double to, double value,
             const std::string& tooltip) {
        out_ << "<rect class='" << css_class << "' x='" << across(from) << "' width='"
             << across(to) - across(from) - 1 << "' y='" << down(value) << "' height='"
             << down(y_.low) - down(value) << "'>" << title(tooltip) << "</rect>\n";
    }

    /// The full height between two values of x, behind a label.
    void band(const std::string& css_class, double from, double to, const std::string& text) {
        out_ << "<rect class='" << css_class << "' x='" << across(from) << "' width='"
             << across(to) - across(from) << "' y='" << top << "' height='" << height - bottom - top
             << "'/>\n"
             << "<text class='note' x='" << across(from) + 8 << "' y='" << top + 16 << "'>"
             << escaped(text) << "</text>\n";
    }

    /// A horizontal line across the chart with a label above its right end.
    void threshold(double value, const std::string& text) {
        out_ << "<line class='threshold' x1='" << left << "' x2='" << width - right << "' y1='"
             << down(value) << "' y2='" << down(value) << "'/>\n"
             << "<text class='note' text-anchor='start' x='" << left + 8 << "' y='"
             << down(value) - 6 << "'>" << escaped(text) << "</text>\n";
    }

    void circle(const std::string& css_class, const point& at, double radius,
                const std::string& tooltip) {
        out_ << "<circle class='" << css_class << "' cx='" << across(at.x) << "' cy='" << down(at.y)
             << "' r='" << radius << "'>" << title(tooltip) << "</circle>\n";
    }

    void cross(const std::string& css_class, const point& at, const std::string& tooltip) {
        const double x = across(at.x);
        const double y = down(at.y);
        constexpr double r = 4.5;
        out_ << "<path class='cross " << css_class << "' d='M" << x - r << ' ' << y - r << " L"
             << x + r << ' ' << y + r << " M" << x - r << ' ' << y + r << " L" << x + r << ' '
             << y - r << "'>" << title(tooltip) << "</path>\n";
    }

    void text(const std::string& css_class, const point& at, const std::string& content) {
        out_ << "<text class='" << css_class << "' x='" << across(at.x) << "' y='" << down(at.y)
             << "'>" << escaped(content) << "</text>\n";
    }

    std::string finish() {
        out_ << "</svg>\n";
        return out_.str();
    }

private:
    static constexpr double width = 760;
    static constexpr double height = 320;
    static constexpr double left = 72;
    static constexpr double right = 20;
    static constexpr double top = 16;
    static constexpr double bottom = 52;

    double across(double x) const {
        return left + (x - x_.low) / (x_.high - x_.low) * (width - left - right);
    }
    double down(double y) const {
        const double inside = std::clamp(y, y_.low, y_.high);
        return height - bottom - (inside - y_.low) / (y_.high - y_.low) * (height - top - bottom);
    }
    static std::string title(const std::string& text) {
        return "<title>" + escaped(text) + "</title>";
    }

    axis x_;
    axis y_;
    std::ostringstream out_;
};

}  // namespace digits_demo
