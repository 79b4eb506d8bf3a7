// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <set>
#include <string_view>

namespace bench {

namespace {

/// Three significant digits or more.
std::string digits(double value) {
    char text[32];
    const int places = std::abs(value) >= 100 ? 0 : std::abs(value) >= 10 ? 1 : 2;
    std::snprintf(text, sizeof text, "%.*f", places, value);
    return text;
}

std::string exact(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

/// A goal is met when it is met in the digits that are shown.
bool reaches(double value, double goal) { return std::round(value * 100) >= goal * 100 - 1e-6; }
bool stays_below(double value, double goal) { return std::round(value * 100) <= goal * 100 + 1e-6; }

std::string goal_text(double goal, bool small_is_good) {
    if (goal == 0 && !small_is_good) return "";
    return (small_is_good ? "≤ " : "≥ ") + digits(goal);
}

bool asked_for(const criterion& question, const figures& one) {
    if (question.names.empty()) return one.part == question.part;
    return std::find(question.names.begin(), question.names.end(), one.name) !=
           question.names.end();
}

std::string_view name_of(role part) {
    switch (part) {
        case role::ours:
            return "ours";
        case role::peer:
            return "peer";
        case role::limit:
            return "limit";
        default:
            return "note";
    }
}

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return result + '"';
}

std::string list(const std::vector<std::string>& items, std::string_view indent) {
    std::string result = "[";
    for (std::size_t i = 0; i < items.size(); ++i) {
        result += (i == 0 ? "\n" : ",\n") + std::string(indent) + items[i];
    }
    return result + ']';
}

std::string json(const figures& one) {
    const spread rates = spread_of(one.rates);
    return "{\"name\": " + quoted(one.name) + ", \"role\": " + quoted(name_of(one.part)) +
           ", \"rounds\": " + std::to_string(one.rates.size()) +
           ", \"median\": " + exact(rates.middle) + ", \"quartiles\": [" + exact(rates.low) + ", " +
           exact(rates.high) + "]}";
}

std::string json(const ratio& one) {
    return "{\"work\": " + quoted(one.question.work) +
           ", \"against\": " + quoted(one.question.against) + ", \"best\": " + quoted(one.best) +
           ", \"median\": " + exact(one.value.middle) + ", \"quartiles\": [" +
           exact(one.value.low) + ", " + exact(one.value.high) + "]}";
}

std::string json(const row& one) {
    std::vector<std::string> contenders;
    for (const figures& figure : one.contenders) contenders.push_back(json(figure));
    std::vector<std::string> ratios;
    for (const ratio& answer : one.ratios) ratios.push_back(json(answer));
    return "{\"work\": " + quoted(one.work) + ", \"case\": " + quoted(one.name) +
           ", \"threads\": " + std::to_string(one.threads) +
           ", \"unit\": " + quoted(one.unit + " (1e9 a second)") +
           ", \"remark\": " + quoted(one.remark) +
           ",\n     \"contenders\": " + list(contenders, "      ") +
           ",\n     \"ratios\": " + list(ratios, "      ") + '}';
}

std::string json(const summary& one) {
    return "{\"work\": " + quoted(one.work) + ", \"against\": " + quoted(one.against) +
           ", \"threads\": " + std::to_string(one.threads) +
           ", \"rows\": " + std::to_string(one.rows) + ", \"mean\": " + exact(one.mean) +
           ", \"goal_mean\": " + exact(one.goal_mean) + ", \"worst\": " + exact(one.worst) +
           ", \"goal_worst\": " + exact(one.goal_worst) +
           ", \"worst_case\": " + quoted(one.worst_name) + ", \"met\": " +
           (!one.has_goal() ? "null"
            : one.met()     ? "true"
                            : "false") +
           '}';
}

}  // namespace

const figures* row::ours() const {
    const auto found = std::find_if(contenders.begin(), contenders.end(),
                                    [](const figures& one) { return one.part == role::ours; });
    return found == contenders.end() ? nullptr : &*found;
}

bool summary::met() const {
    if (small_is_good) return stays_below(mean, goal_mean) && stays_below(worst, goal_worst);
    return reaches(mean, goal_mean) && reaches(worst, goal_worst);
}

void report::add(row line, const std::vector<criterion>& questions) {
    const figures* ours = line.ours();
    for (const criterion& question : questions) {
        const figures* best = nullptr;
        for (const figures& one : line.contenders) {
            if (!asked_for(question, one)) continue;
            if (best == nullptr || one.median() > best->median()) best = &one;
        }
        if (ours != nullptr && best != nullptr) {
            line.ratios.push_back({question, best->name, compare(*ours, *best)});
        }
    }
    rows_.push_back(std::move(line));
}

std::vector<summary> report::summaries() const {
    std::vector<summary> all;
    for (const row& line : rows_) {
        for (const ratio& answer : line.ratios) {
            const criterion& question = answer.question;
            auto place = std::find_if(all.begin(), all.end(), [&](const summary& one) {
                return one.work == question.work && one.against == question.against &&
                       one.threads == line.threads;
            });
            if (place == all.end()) {
                all.push_back({question.work, question.against, line.threads});
                place = all.end() - 1;
                place->goal_mean = question.goal_mean;
                place->goal_worst = question.goal_worst;
            }
            if (place->rows == 0 || answer.value.middle < place->worst) {
                place->worst = answer.value.middle;
                place->worst_name = line.name;
            }
            ++place->rows;
            place->mean += std::log(answer.value.middle);
        }
    }
    for (summary& one : all) one.mean = std::exp(one.mean / static_cast<double>(one.rows));
    std::stable_sort(all.begin(), all.end(),
                     [&](const summary& a, const summary& b) { return a.threads < b.threads; });
    all.insert(all.end(), counted_.begin(), counted_.end());
    return all;
}

std::string describe(const row& line) {
    std::string text = line.work + ", " + line.name + ", " + std::to_string(line.threads) +
                       (line.threads == 1 ? " thread:" : " threads:");
    for (const figures& one : line.contenders) {
        text += "  " + one.name + ' ' + digits(one.median());
    }
    return text + ' ' + line.unit;
}

void report::print_markdown(std::ostream& out) const {
    for (const auto& [name, value] : facts_) out << "- " << name << ": " << value << '\n';
    std::set<std::string> remarks;
    for (const row& line : rows_) {
        if (!line.remark.empty()) remarks.insert(line.work + ": " + line.remark);
    }
    for (const std::string& remark : remarks) out << "- " << remark << '\n';
    out << "\n| work | against | threads | cases | geometric mean | goal | worst | goal | "
           "where | met |\n|---|---|---|---|---|---|---|---|---|---|\n";
    for (const summary& one : summaries()) {
        out << "| " << one.work << " | " << one.against << " | "
            << (one.threads == 0 ? "" : std::to_string(one.threads)) << " | " << one.rows << " | "
            << digits(one.mean) << " | " << goal_text(one.goal_mean, one.small_is_good) << " | "
            << digits(one.worst) << " | " << goal_text(one.goal_worst, one.small_is_good) << " | "
            << one.worst_name << " | "
            << (!one.has_goal() ? ""
                : one.met()     ? "yes"
                                : "**no**")
            << " |\n";
    }
    if (rows_.empty()) return;
    out << "\n| work | case | threads | demi | beside it |\n|---|---|---|---|---|\n";
    for (const row& line : rows_) {
        const figures* ours = line.ours();
        out << "| " << line.work << " | " << line.name << " | " << line.threads << " | "
            << digits(ours == nullptr ? 0 : ours->median()) << ' ' << line.unit << " | ";
        for (std::size_t i = 0; i < line.ratios.size(); ++i) {
            const ratio& one = line.ratios[i];
            out << (i == 0 ? "" : "; ") << digits(one.value.middle) << " of " << one.best;
        }
        out << " |\n";
    }
}

void report::write_json(std::ostream& out) const {
    std::vector<std::string> known;
    for (const auto& [name, value] : facts_) known.push_back(quoted(name) + ": " + quoted(value));
    std::vector<std::string> lines;
    for (const summary& one : summaries()) lines.push_back(json(one));
    std::vector<std::string> rows;
    for (const row& one : rows_) rows.push_back(json(one));
    std::string about = list(known, "    ");
    about.front() = '{';
    about.back() = '}';
    out << "{\n  \"about\": " << about << ",\n  \"summary\": " << list(lines, "    ")
        << ",\n  \"rows\": " << list(rows, "    ") << "\n}\n";
}

}  // namespace bench
