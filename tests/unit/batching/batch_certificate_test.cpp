// SPDX-License-Identifier: MIT
#include <demi/batching/batch_certificate.hpp>

#include <string>
#include <support/catch.hpp>

TEST_CASE("Outcomes carry their verdict and bytes") {
    CHECK(demi::trial_outcome::fit(5).verdict == demi::trial_verdict::fit);
    CHECK(demi::trial_outcome::fit(5).bytes == 5);
    CHECK(demi::trial_outcome::over_budget(6).verdict == demi::trial_verdict::over_budget);
    CHECK(demi::trial_outcome::over_budget(6).bytes == 6);
    CHECK(demi::trial_outcome::out_of_memory().bytes == 0);
    CHECK(demi::trial_outcome::out_of_memory(7).bytes == 7);
    CHECK(demi::trial_outcome::tainted().verdict == demi::trial_verdict::tainted);
}

TEST_CASE("Each verdict has its own words") {
    CHECK(std::string(demi::describe(demi::trial_verdict::fit)) == "fits");
    CHECK(std::string(demi::describe(demi::trial_verdict::over_budget)) == "over budget");
    CHECK(std::string(demi::describe(demi::trial_verdict::out_of_memory)) == "out of memory");
    CHECK(std::string(demi::describe(demi::trial_verdict::tainted)) == "disturbed");
}
