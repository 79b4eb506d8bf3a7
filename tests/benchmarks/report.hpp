// SPDX-License-Identifier: MIT
/// Collects rows, prints the tables, writes the JSON file.
#pragma once

#include "contest.hpp"

#include <cstddef>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// A question about rows: how fast are we beside these, and how fast do we want to be.
struct criterion {
    std::string work;                     ///< rows of one work and criterion are summed up together
    std::string against;                  ///< how the others are called together
    std::vector<std::string> names = {};  ///< of contenders; empty for all of role `part`
    role part = role::peer;
    double goal_mean = 0;   ///< of the geometric mean; 0 for no goal
    double goal_worst = 0;  ///< of every row; 0 for no goal
};

/// One answer: ours over the best of the others.
struct ratio {
    criterion question;
    std::string best;
    spread value;
};

struct row {
    std::string work = {};
    std::string name = {};
    std::size_t threads = 1;
    std::string unit = {};
    std::vector<figures> contenders = {};
    std::vector<ratio> ratios = {};
    std::string remark = {};

    const figures* ours() const;
};

/// A line of the summary. Figures that count something, such as trials, want to be small.
struct summary {
    std::string work = {};
    std::string against = {};
    std::size_t threads = 0;  ///< 0 where threads play no part
    std::size_t rows = 0;
    double mean = 0;
    double goal_mean = 0;
    double worst = 0;
    double goal_worst = 0;
    std::string worst_name = {};
    bool small_is_good = false;

    bool has_goal() const { return goal_mean > 0 || goal_worst > 0 || small_is_good; }
    bool met() const;
};

class report {
public:
    using facts = std::vector<std::pair<std::string, std::string>>;

    /// Finds the best of those that each question asks for, and keeps the row.
    void add(row line, const std::vector<criterion>& questions);
    void add(summary line) { counted_.push_back(std::move(line)); }
    void state(std::string name, std::string value) {
        facts_.emplace_back(std::move(name), std::move(value));
    }

    const std::vector<row>& rows() const { return rows_; }
    std::vector<summary> summaries() const;
    void print_markdown(std::ostream& out) const;
    void write_json(std::ostream& out) const;

private:
    facts facts_;
    std::vector<row> rows_;
    std::vector<summary> counted_;
};

/// One line about a row, for whoever waits.
std::string describe(const row& line);

}  // namespace bench
