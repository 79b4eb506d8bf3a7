// SPDX-License-Identifier: MIT
#include <demi/batching/batch_plan.hpp>

#include <cstddef>
#include <cstring>
#include <sstream>
#include <string>
#include <support/catch.hpp>
#include <type_traits>
#include <vector>

static_assert(std::is_trivially_copyable_v<demi::plan_shape>);
static_assert(std::is_standard_layout_v<demi::plan_shape>);

TEST_CASE("A shape splits full, short and long batches (P8, P11)") {
    const demi::plan_shape shape{512, 100};
    CHECK(shape.accumulation_steps() == 6);
    CHECK(shape.split(512)[5].size == 12);
    CHECK(shape.split(std::vector<int>(150)).size() == 2);
    CHECK(shape.split(30)[0].weight == 1.0f);
    CHECK(shape.split(1000).size() == 10);
    CHECK_THROWS_AS(shape.split(0), demi::invalid_argument);
    CHECK_THROWS_AS(demi::plan_shape{}.split(8), demi::invalid_argument);
}

TEST_CASE("A shape survives a checkpoint and is compared by value (P7)") {
    const demi::plan_shape shape{32, 6, 2};
    unsigned char saved[sizeof shape];
    std::memcpy(saved, &shape, sizeof shape);
    demi::plan_shape restored;
    std::memcpy(&restored, saved, sizeof shape);
    CHECK(restored == shape);
    CHECK(restored.accumulation_steps() == 6);
    CHECK_FALSE(restored == demi::plan_shape{32, 6, 1});
}

TEST_CASE("A plan is described with its evidence") {
    demi::batch_plan plan{{512, 64}, std::size_t{1} << 30, 0, std::size_t{3} << 20, {}};
    plan.certificate.budget = std::size_t{3} << 29;
    plan.certificate.size = 70;
    plan.certificate.peak = 1300;
    plan.certificate.failure = {71, demi::trial_verdict::out_of_memory, 2000};
    plan.certificate.non_monotone = true;
    plan.certificate.trials.resize(5);
    std::ostringstream stream;
    stream << plan;
    CHECK(stream.str() ==
          "512 samples per update as 8 x 64, peak 1.0 GiB of a budget of 1.5 GiB\n"
          "largest batch that fits, after 5 trials: 70 (1.2 KiB); batch 71: out of memory, at "
          "least 1.9 KiB\n"
          "a smaller batch was seen to need more than a larger one\n"
          "3.0 MiB were not free again after trials that failed\n");
}

TEST_CASE("A description says when the largest size allowed fits or the trials ran out") {
    demi::batch_plan plan{{8, 8}, 900, 0, 0, {}};
    plan.certificate.size = 8;
    plan.certificate.end = demi::search_end::maximum;
    CHECK(describe(plan).find("peak 900 B") != std::string::npos);
    CHECK(describe(plan).find("it is the largest allowed") != std::string::npos);
    plan.certificate.end = demi::search_end::trial_limit;
    CHECK(describe(plan).find("the trials were used up") != std::string::npos);
}

TEST_CASE("does_not_fit carries its evidence") {
    const demi::does_not_fit failure("no", {1, demi::trial_verdict::over_budget, 900}, 800);
    CHECK(failure.smallest().size == 1);
    CHECK(failure.smallest().bytes == 900);
    CHECK(failure.budget() == 800);
}
