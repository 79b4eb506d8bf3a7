// SPDX-License-Identifier: MIT
/// Times several implementations of one piece of work against each other.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace bench {

using task = std::function<void()>;

enum class role {
    ours,
    peer,   ///< other software for the same work
    limit,  ///< what the hardware allows: a copy, a read, a chain of FMAs
    note,   ///< shown, but not compared with: it does less than the work
};

/// One implementation. `work` is what one call does, in bytes, flops or elements.
struct contender {
    std::string name;
    role part = role::peer;
    double work = 0;
    task run;
};

/// The samples of one contender: billions of work units per second, one for each round.
struct figures {
    std::string name;
    role part = role::peer;
    std::vector<double> rates;

    double median() const;
};

struct spread {
    double low = 0;  ///< lower quartile
    double middle = 0;
    double high = 0;  ///< upper quartile
};

spread spread_of(std::vector<double> values);

/// How much time to spend.
struct pace {
    double sample_seconds = 1e-3;
    double row_seconds = 1;
    std::size_t least_rounds = 5;
    std::size_t threads = 1;
};

/// Runs the contenders in turn, round after round, each round beginning with another one, so that a
/// neighbour's load and the changes of the clock meet all of them. Contenders without a function
/// are left out. A contender ten times slower than the fastest is not asked after the third round.
std::vector<figures> contest(const std::vector<contender>& all, const pace& settings);

/// Ours over another, round by round.
spread compare(const figures& ours, const figures& other);

}  // namespace bench
