// SPDX-License-Identifier: MIT
#include <demi/batching/trial.hpp>

#include <cstddef>
#include <string>
#include <support/catch.hpp>

namespace {

struct reports_nothing {
    void operator()(demi::trial&) const {}
};
struct returns_peak {
    std::size_t operator()(const demi::trial&) const { return 1; }
};
struct returns_text {
    std::string operator()(demi::trial&) const { return {}; }
};
struct takes_a_size {
    void operator()(std::size_t) const {}
};

static_assert(demi::batch_trial<reports_nothing>);
static_assert(demi::batch_trial<returns_peak>);
static_assert(!demi::batch_trial<returns_text>);
static_assert(!demi::batch_trial<takes_a_size>);

}  // namespace

TEST_CASE("A trial knows its batch size and its number") {
    const demi::trial trial(24, 3);
    CHECK(trial.batch_size() == 24);
    CHECK(trial.number() == 3);
    CHECK_FALSE(trial.has_peak());
    CHECK_FALSE(trial.is_refused());
}

TEST_CASE("The largest peak reported counts") {
    demi::trial trial(1);
    trial.report_peak(30);
    trial.report_peak(10);
    CHECK(trial.has_peak());
    CHECK(trial.peak() == 30);
}

TEST_CASE("Updates are counted between two questions") {
    demi::trial trial(1);
    CHECK(trial.take_updates() == 1);
    trial.report_updates(0);
    CHECK(trial.take_updates() == 0);
    trial.report_updates(1);
    trial.report_updates(2);
    CHECK(trial.take_updates() == 3);
    CHECK(trial.take_updates() == 1);
}

TEST_CASE("A refusal is remembered with its lower bound") {
    demi::trial trial(1);
    trial.report_out_of_memory(99);
    CHECK(trial.is_refused());
    CHECK(trial.lower_bound() == 99);
}
