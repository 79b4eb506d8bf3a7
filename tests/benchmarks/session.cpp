// SPDX-License-Identifier: MIT
#include "session.hpp"

#include <iostream>
#include <stdexcept>
#include <utility>

namespace bench {

bool session::wants(const std::string& work, const std::string& name) const {
    return (work + ", " + name).find(options_.filter) != std::string::npos;
}

void session::measure(row line, const std::vector<contender>& contenders,
                      const std::vector<criterion>& questions) {
    const pace settings{.sample_seconds = quick() ? 5e-4 : 1e-3,
                        .row_seconds = quick() ? 0.15 : 0.8,
                        .least_rounds = quick() ? std::size_t{3} : std::size_t{5},
                        .threads = threads_};
    line.threads = threads_;
    line.contenders = contest(contenders, settings);
    std::cerr << describe(line) << '\n';
    results_.add(std::move(line), questions);
}

void require(bool right, const std::string& who, const std::string& what) {
    if (!right) throw std::runtime_error(who + " computes another result: " + what);
}

}  // namespace bench
