// SPDX-License-Identifier: MIT
/// What the rows of one run have in common, and the list of all rows.
#pragma once

#include "report.hpp"
#include <demi/host/host_backend.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

struct options {
    bool quick = false;
    std::string filter = {};
    std::string json_file = {};
    std::vector<std::size_t> threads = {1, 2};
};

/// A run with one number of threads.
class session {
public:
    session(const options& chosen, std::size_t threads, report& results)
        : options_(chosen),
          threads_(threads),
          backend_(demi::host_settings{.threads = threads}),
          results_(results) {}

    bool quick() const { return options_.quick; }
    std::size_t threads() const { return threads_; }
    demi::host_backend& backend() { return backend_; }

    /// Whether the filter, if any, is part of "work, case".
    bool wants(const std::string& work, const std::string& name) const;

    /// Times the contenders and keeps the row. The unit is that of one billion of `work` a second.
    void measure(row line, const std::vector<contender>& contenders,
                 const std::vector<criterion>& questions);

private:
    const options& options_;
    std::size_t threads_;
    demi::host_backend backend_;
    report& results_;
};

/// Throws unless what a contender computed is right: a figure for a wrong result is none.
void require(bool right, const std::string& who, const std::string& what);

void measure_casts(session& where);
void measure_products(session& where);
void measure_passes(session& where);
/// Counts trials: nothing is timed.
void count_trials(const options& chosen, report& results);

}  // namespace bench
