// SPDX-License-Identifier: MIT
#include <demi/batching/batch_search.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <support/catch.hpp>
#include <utility>
#include <vector>

namespace {

using curve = std::function<double(double)>;

constexpr std::size_t cap = 60000;

/// A memory curve, the budget, and the capacity beyond which a trial is refused memory.
struct world {
    curve bytes;
    double budget;
    double capacity;

    std::size_t peak(std::size_t size) const {
        const double needed = std::min(1e18, bytes(static_cast<double>(size)));
        return static_cast<std::size_t>(std::ceil(needed));
    }
    bool fits(std::size_t size) const { return peak(size) <= static_cast<std::size_t>(budget); }
    demi::trial_outcome run(std::size_t size) const {
        const std::size_t needed = peak(size);
        if (static_cast<double>(needed) > capacity) return demi::trial_outcome::out_of_memory();
        return demi::trial_outcome::fit(needed);
    }
};

double uniform(std::mt19937_64& random, double from, double to) {
    return from + (to - from) * (static_cast<double>(random() >> 11) * 0x1p-53);
}

/// A training step: a fixed part, a part in proportion to the batch, sometimes in the steps of an
/// allocator, and up to two jumps where a library changes its algorithm.
world training_step(std::mt19937_64& random) {
    const double budget = 21.85 * 0x1p30;
    const double fixed = uniform(random, 0.05, 0.8) * budget;
    const double largest = 8 * std::exp2(uniform(random, 0, 10));
    const double slope = (budget - fixed) / largest;
    const double granule[] = {0, 0, 2 * 0x1p20, 8 * 0x1p20};
    const double step = granule[random() % 4] * (random() % 2 == 0 ? 96 : 16);
    std::vector<std::pair<double, double>> jumps(random() % 3);
    for (auto& [at, height] : jumps) {
        at = std::floor(uniform(random, 1, 1.5 * largest));
        height = uniform(random, 0, 0.2) * budget;
    }
    const auto bytes = [=](double size) {
        double sum = slope * size;
        if (step > 0) sum = step * std::ceil(sum / step);
        for (const auto& [at, height] : jumps) sum += size >= at ? height : 0;
        return fixed + sum;
    };
    return {bytes, budget, 23 * 0x1p30};
}

/// Curves that are no straight line at all, all of them nondecreasing.
world hostile(std::mt19937_64& random) {
    const double budget = 1e10;
    const double room[] = {1, 1.05, 1.3};
    const double capacity = room[random() % 3] * budget;
    const double fixed = uniform(random, 0, 0.9) * budget;
    const double rest = budget - fixed;
    const double largest = std::exp2(uniform(random, 0, 16));
    switch (random() % 5) {
        case 0:
            return {[=](double b) { return fixed + rest * std::sqrt(b / largest); }, budget,
                    capacity};
        case 1:
            return {[=](double b) { return fixed + rest * std::log1p(b) / std::log1p(largest); },
                    budget, capacity};
        case 2:
            return {[=](double b) { return fixed + rest * std::pow(b / largest, 2.5); }, budget,
                    capacity};
        case 3: {
            const double stair = std::max(1.0, largest / uniform(random, 1, 10));
            const double factor = rest / largest * uniform(random, 0.8, 1.2);
            return {[=](double b) { return fixed + std::ceil(b / stair) * stair * factor; }, budget,
                    capacity};
        }
        default: {
            std::vector<std::pair<double, double>> jumps(40);
            for (auto& [at, height] : jumps) {
                at = std::exp2(uniform(random, 0, 17));
                height = uniform(random, 0, budget / 20);
            }
            return {[=](double b) {
                        double sum = fixed / 2;
                        for (const auto& [at, height] : jumps) sum += b >= at ? height : 0;
                        return sum;
                    },
                    budget, capacity};
        }
    }
}

/// The largest multiple that fits a nondecreasing curve, 0 when none does.
std::size_t true_maximum(const world& where, std::size_t multiple) {
    std::size_t low = 0;
    std::size_t high = cap / multiple + 1;
    while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        (where.fits(middle * multiple) ? low : high) = middle;
    }
    return low * multiple;
}

/// The trials that doubling from 8 and bisection take to the same answer.
std::size_t trials_of_doubling(const world& where, std::size_t multiple) {
    const std::size_t last = cap / multiple;
    std::size_t size = std::max<std::size_t>(1, 8 / multiple);
    std::size_t low = 0;
    std::size_t high = 0;
    for (std::size_t trials = 1;; ++trials) {
        (where.fits(size * multiple) ? low : high) = size;
        if (high == 1 || low == last || (high > 0 && low > 0 && high - low == 1)) return trials;
        if (low == 0) {
            size = std::max<std::size_t>(1, size / 2);
        } else {
            size = high == 0 ? std::min(2 * size, last) : low + (high - low) / 2;
        }
    }
}

const demi::batch_certificate& run(demi::batch_search& search, const world& where) {
    while (const auto size = search.next()) search.tell(where.run(*size));
    return search.certificate();
}

demi::batch_certificate find(const curve& bytes, demi::batch_search_settings settings,
                             double capacity = 0) {
    const auto budget = static_cast<double>(settings.budget);
    demi::batch_search search(settings);
    return run(search, {bytes, budget, std::max(capacity, budget)});
}

std::vector<std::size_t> sizes(const demi::batch_certificate& proof) {
    std::vector<std::size_t> result;
    for (const demi::trial_record& trial : proof.trials) result.push_back(trial.size);
    return result;
}

struct tally {
    std::size_t cases = 0;
    std::size_t wrong = 0;
    std::size_t unproven = 0;
    std::size_t trials = 0;
    std::size_t doubling = 0;
    std::size_t worst = 0;
};

/// Compares searches with the true maximum and with doubling.
tally measure(world (*make)(std::mt19937_64&), std::size_t multiple) {
    std::mt19937_64 random(7);
    tally sum;
    for (; sum.cases < 3000; ++sum.cases) {
        const world where = make(random);
        demi::batch_search search({.budget = static_cast<std::size_t>(where.budget),
                                   .maximum = cap,
                                   .multiple = multiple});
        const demi::batch_certificate& proof = run(search, where);
        if (proof.size != true_maximum(where, multiple)) ++sum.wrong;
        const bool has_witness = proof.failure && proof.failure->size == proof.size + multiple;
        if (!has_witness && proof.end != demi::search_end::maximum) ++sum.unproven;
        const std::size_t doubling = trials_of_doubling(where, multiple);
        sum.trials += proof.trials.size();
        sum.doubling += doubling;
        sum.worst =
            std::max(sum.worst, proof.trials.size() - std::min(proof.trials.size(), doubling));
    }
    return sum;
}

std::string refusal(const demi::batch_search_settings& settings) {
    try {
        demi::batch_search search(settings);
    } catch (const demi::invalid_argument& failure) {
        return failure.what();
    }
    return "nothing was thrown";
}

}  // namespace

TEST_CASE("On training steps the search finds the maximum in 0.575 of doubling's trials") {
    const tally sum = measure(training_step, 1);
    CAPTURE(sum.trials, sum.doubling, sum.worst);
    CHECK(sum.wrong == 0);
    CHECK(sum.unproven == 0);
    CHECK(static_cast<double>(sum.trials) <= 0.575 * static_cast<double>(sum.doubling));
    CHECK(sum.worst <= 2);
}

TEST_CASE("On multiples of eight the search needs 0.57 of doubling's trials") {
    const tally sum = measure(training_step, 8);
    CAPTURE(sum.trials, sum.doubling, sum.worst);
    CHECK(sum.wrong == 0);
    CHECK(sum.unproven == 0);
    CHECK(static_cast<double>(sum.trials) <= 0.57 * static_cast<double>(sum.doubling));
    CHECK(sum.worst <= 2);
}

TEST_CASE("On curves that are no line the search needs 0.76 of doubling's trials") {
    const tally sum = measure(hostile, 1);
    CAPTURE(sum.trials, sum.doubling, sum.worst);
    CHECK(sum.wrong == 0);
    CHECK(sum.unproven == 0);
    CHECK(static_cast<double>(sum.trials) <= 0.76 * static_cast<double>(sum.doubling));
    CHECK(sum.worst <= 2);
}

TEST_CASE("Whatever the outcomes are, the answer ran within the budget and the search ends") {
    std::mt19937_64 random(11);
    std::size_t wrong = 0;
    for (int i = 0; i < 20000; ++i) {
        demi::batch_search_settings settings{.budget = 1 + random() % 1000,
                                             .minimum = 1 + random() % 5,
                                             .maximum = 40 + random() % 5000,
                                             .multiple = 1 + random() % 9,
                                             .tolerance = static_cast<double>(random() % 20) / 100,
                                             .start = 1 + random() % 700,
                                             .growth = 2 + random() % 9,
                                             .slack = random() % 5,
                                             .max_trials = 1 + random() % 64};
        demi::batch_search search(settings);
        std::size_t asked = 0;
        while (const auto size = search.next()) {
            ++asked;
            if (*size == 0 || *size % settings.multiple != 0) ++wrong;
            if (*size < settings.minimum || *size > settings.maximum) ++wrong;
            const std::size_t bytes = random() % 1500;
            switch (random() % 6) {
                case 0:
                    search.tell(demi::trial_outcome::out_of_memory(bytes));
                    break;
                case 1:
                    search.tell(demi::trial_outcome::tainted());
                    break;
                case 2:
                    search.tell(demi::trial_outcome::over_budget(bytes));
                    break;
                default:
                    search.tell(demi::trial_outcome::fit(bytes));
            }
            if (random() % 16 == 0) search.lower_budget(1 + random() % 1000);
        }
        const demi::batch_certificate& proof = search.certificate();
        if (asked > settings.max_trials || asked != proof.trials.size()) ++wrong;
        if (proof.end == demi::search_end::unfinished) ++wrong;
        const bool ran = std::any_of(proof.trials.begin(), proof.trials.end(), [&](auto& trial) {
            return trial.size == proof.size && trial.verdict == demi::trial_verdict::fit &&
                   trial.bytes <= proof.budget;
        });
        if (ran != (proof.size > 0)) ++wrong;
        if (proof.peak > proof.budget) ++wrong;
        if (proof.failure && proof.failure->size <= proof.size) ++wrong;
    }
    CHECK(wrong == 0);
}

TEST_CASE("With a tolerance a failing size within it is known") {
    std::mt19937_64 random(5);
    std::size_t wrong = 0;
    for (int i = 0; i < 2000; ++i) {
        const world where = i % 2 == 0 ? training_step(random) : hostile(random);
        demi::batch_search search(
            {.budget = static_cast<std::size_t>(where.budget), .maximum = cap, .tolerance = 0.02});
        const demi::batch_certificate& proof = run(search, where);
        if (proof.size > 0 && !where.fits(proof.size)) ++wrong;
        if (proof.size == 0 && true_maximum(where, 1) > 0) ++wrong;
        if (proof.end == demi::search_end::closed) {
            const double gap = static_cast<double>(proof.failure->size - proof.size);
            if (gap > std::max(1.0, 0.02 * static_cast<double>(proof.size))) ++wrong;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("A straight line takes four trials from a start within the growth factor") {
    const auto line = [](double size) { return 6000 + 37 * size; };
    const auto proof = find(line, {.budget = 21850, .start = 100}, 23000);
    CHECK(proof.size == 428);
    CHECK(proof.peak == 21836);
    REQUIRE(proof.failure);
    CHECK(*proof.failure == demi::trial_record{429, demi::trial_verdict::over_budget, 21873});
    CHECK(proof.trials.size() <= 4);
    CHECK(proof.end == demi::search_end::closed);
    CHECK_FALSE(proof.non_monotone);
}

TEST_CASE("A perfect prediction takes two trials more than its own") {
    const auto line = [](double size) { return 6000 + 37 * size; };
    CHECK(find(line, {.budget = 21850, .start = 428}, 23000).trials.size() <= 3);
}

TEST_CASE("When not even one sample fits, nothing is answered (P1, P26, P65)") {
    const auto proof = find([](double size) { return 899 + size; }, {.budget = 800});
    CHECK(proof.size == 0);
    CHECK(proof.peak == 0);
    CHECK(proof.end == demi::search_end::nothing_fits);
    REQUIRE(proof.failure);
    CHECK(proof.failure->size == 1);
    CHECK(proof.trials.size() <= 4);
    const auto tried = sizes(proof);
    CHECK(std::find(tried.begin(), tried.end(), std::size_t{0}) == tried.end());
}

TEST_CASE("A small cost per sample reaches a large cap in a few trials (P13)") {
    const auto flat = [](double size) { return 100 * size; };
    const demi::batch_search_settings settings{.budget = 500000000, .maximum = 3366292};
    const auto proof = find(flat, settings);
    CHECK(proof.size == 3366292);
    CHECK(proof.end == demi::search_end::maximum);
    CHECK(proof.trials.size() <= 8);
    auto predicted = settings;
    predicted.start = 3366292;
    CHECK(find(flat, predicted).trials.size() == 1);
}

TEST_CASE("A start that is far too large comes back in a few trials (P14)") {
    const auto proof =
        find([](double size) { return 100 + 10 * size; }, {.budget = 1100, .start = 512});
    CHECK(proof.size == 100);
    CHECK(proof.trials.size() <= 10);
}

TEST_CASE("The cap is never the answer without a trial (P17)") {
    const auto proof = find([](double size) { return 400 * size + 500000; },
                            {.budget = 22000000, .maximum = 60000}, 23e6);
    CHECK(proof.size == 53750);
    CHECK(proof.trials.size() <= 8);
}

TEST_CASE("Noisy first trials do not lead astray (P22)") {
    const auto noisy = [](double size) {
        if (size < 2) return 2414.0;
        if (size < 8) return 1380.0;
        return 600 + 3 * size;
    };
    const auto proof = find(noisy, {.budget = 4000, .start = 1});
    CHECK(proof.size == 1133);
    CHECK(proof.non_monotone);
    CHECK(proof.trials.size() <= 16);
}

TEST_CASE("A flat curve is never extrapolated beyond the growth factor (P23)") {
    const auto flat = [](double size) {
        return size <= 16 ? 1000 + std::floor(size / 8) : 1000 + 20 * (size - 16);
    };
    const auto proof = find(flat, {.budget = 12000, .start = 1});
    CHECK(proof.size == 566);
    std::size_t largest_fit = 1;
    std::size_t leaps = 0;
    for (const demi::trial_record& trial : proof.trials) {
        if (trial.size > 8 * largest_fit) ++leaps;
        if (trial.verdict == demi::trial_verdict::fit) {
            largest_fit = std::max(largest_fit, trial.size);
        }
    }
    CHECK(leaps == 0);
}

TEST_CASE("A data set smaller than memory allows is the answer, on the lattice (P31)") {
    const auto line = [](double size) { return size; };
    CHECK(find(line, {.budget = 200, .maximum = 37}).size == 37);
    CHECK(find(line, {.budget = 200, .maximum = 37, .multiple = 8}).size == 32);
}

TEST_CASE("A workspace that depends on the size leaves a verified answer (P58)") {
    const auto workspace = [](double size) {
        return 500 + 10 * size + (size >= 64 && size < 128 ? 1500 : 300);
    };
    const auto proof = find(workspace, {.budget = 2700});
    REQUIRE(proof.size > 0);
    CHECK(workspace(static_cast<double>(proof.size)) <= 2700);
    REQUIRE(proof.failure);
    CHECK(workspace(static_cast<double>(proof.failure->size)) > 2700);
}

TEST_CASE("A probe that never fails ends at the cap (P62)") {
    demi::batch_search search({.budget = 1000});
    std::size_t trials = 0;
    for (; search.next(); ++trials) search.tell(demi::trial_outcome::fit(1));
    CHECK(search.certificate().end == demi::search_end::maximum);
    CHECK(search.certificate().size == std::size_t{1} << 20);
    CHECK(trials <= 8);
}

TEST_CASE("A maximum without bound does not overflow") {
    demi::batch_search search({.budget = 1000, .maximum = std::numeric_limits<std::size_t>::max()});
    while (search.next()) search.tell(demi::trial_outcome::fit(1));
    CHECK(search.certificate().end == demi::search_end::maximum);
    CHECK(search.certificate().size == std::size_t{1} << 53);
}

TEST_CASE("A fit above the budget is over budget") {
    demi::batch_search search({.budget = 100});
    static_cast<void>(search.next());
    search.tell(demi::trial_outcome::fit(101));
    CHECK(search.certificate().size == 0);
    CHECK(search.certificate().trials[0].verdict == demi::trial_verdict::over_budget);
}

TEST_CASE("A thrashing size fails although its peak is within the budget (P35)") {
    demi::batch_search search({.budget = 1000});
    while (const auto size = search.next()) {
        search.tell(*size > 50 ? demi::trial_outcome::over_budget(10 * *size)
                               : demi::trial_outcome::fit(10 * *size));
    }
    CHECK(search.certificate().size == 50);
}

TEST_CASE("A disturbed trial is repeated twice and then counts as failed") {
    demi::batch_search search({.budget = 1000});
    for (int i = 0; i < 3; ++i) {
        CHECK(search.next() == std::size_t{8});
        search.tell(demi::trial_outcome::tainted());
    }
    CHECK(search.next() == std::size_t{4});
    while (const auto size = search.next()) search.tell(demi::trial_outcome::fit(10 * *size));
    CHECK(search.certificate().size == 7);
    REQUIRE(search.certificate().failure);
    CHECK(search.certificate().failure->verdict == demi::trial_verdict::tainted);
}

TEST_CASE("A lower budget takes back fits that no longer are, and the search goes on") {
    const world where{[](double size) { return 10 * size; }, 1000, 1000};
    demi::batch_search search({.budget = 1000});
    CHECK(run(search, where).size == 100);
    search.lower_budget(700);
    CHECK(search.certificate().size < 100);
    CHECK(run(search, where).size == 70);
    CHECK(search.certificate().budget == 700);
    search.lower_budget(5000);
    CHECK(search.certificate().budget == 700);
    CHECK_THROWS_AS(search.lower_budget(0), demi::invalid_argument);

    demi::batch_search in_flight({.budget = 1000});
    static_cast<void>(in_flight.next());
    in_flight.lower_budget(50);
    in_flight.tell(demi::trial_outcome::fit(80));
    CHECK(in_flight.certificate().trials[0].verdict == demi::trial_verdict::over_budget);
}

TEST_CASE("Trials from elsewhere are part of the log and of the proof") {
    const world where{[](double size) { return 10 * size; }, 1000, 1000};
    demi::batch_search search({.budget = 1000, .multiple = 8});
    CHECK(run(search, where).size == 96);
    const std::size_t trials = search.certificate().trials.size();
    search.record(12, demi::trial_outcome::fit(120));
    CHECK(search.certificate().trials.size() == trials + 1);
    CHECK_FALSE(search.certificate().non_monotone);
    search.record(13, demi::trial_outcome::fit(1001));
    CHECK(search.certificate().non_monotone);
    CHECK(search.certificate().size == 96);
    CHECK_THROWS_AS(search.record(0, demi::trial_outcome::fit(1)), demi::invalid_argument);
}

TEST_CASE("Sizes below the minimum are never tried") {
    const auto proof =
        find([](double size) { return 1000 * size; }, {.budget = 2500, .minimum = 2});
    CHECK(proof.size == 2);
    const auto nothing =
        find([](double size) { return 1000 * size; }, {.budget = 1500, .minimum = 2});
    CHECK(nothing.end == demi::search_end::nothing_fits);
    const auto tried = sizes(nothing);
    CHECK(*std::min_element(tried.begin(), tried.end()) == 2);
}

TEST_CASE("Trials that run out leave what is verified") {
    const auto proof =
        find([](double size) { return 10 * size; }, {.budget = 10000, .max_trials = 2});
    CHECK(proof.end == demi::search_end::trial_limit);
    CHECK(proof.size > 0);
    CHECK(proof.trials.size() == 2);
}

TEST_CASE("The same outcomes give the same questions") {
    std::mt19937_64 random(3);
    const world where = training_step(random);
    const demi::batch_search_settings settings{.budget = static_cast<std::size_t>(where.budget)};
    demi::batch_search one(settings);
    demi::batch_search other(settings);
    CHECK(run(one, where).trials == run(other, where).trials);
}

TEST_CASE("Telling without having asked is refused and changes nothing") {
    demi::batch_search search({.budget = 1000});
    CHECK_THROWS_AS(search.tell(demi::trial_outcome::fit(1)), demi::invalid_state);
    CHECK(search.certificate().trials.empty());
    CHECK(search.next() == search.next());
    search.tell(demi::trial_outcome::fit(1));
    CHECK_THROWS_AS(search.tell(demi::trial_outcome::fit(1)), demi::invalid_state);
    while (search.next()) search.tell(demi::trial_outcome::out_of_memory());
    CHECK_THROWS_AS(search.tell(demi::trial_outcome::fit(1)), demi::invalid_state);
}

TEST_CASE("Settings that leave nothing to search are refused with the value") {
    const auto says = [](const demi::batch_search_settings& settings, const char* text) {
        return refusal(settings).find(text) != std::string::npos;
    };
    CHECK(says({.budget = 0}, "budget is 0"));
    CHECK(says({.budget = 1, .multiple = 0}, "multiple is 0"));
    CHECK(says({.budget = 1, .minimum = 0}, "minimum is 0"));
    CHECK(says({.budget = 1, .maximum = 7, .multiple = 8}, "maximum is 7"));
    CHECK(says({.budget = 1, .minimum = 9, .maximum = 15, .multiple = 8}, "maximum is 15"));
    CHECK(says({.budget = 1, .tolerance = -0.5}, "tolerance is -0.5"));
    CHECK(says({.budget = 1, .tolerance = 1.5}, "tolerance is 1.5"));
    CHECK(says({.budget = 1, .tolerance = std::numeric_limits<double>::quiet_NaN()},
               "tolerance is nan"));
    CHECK(says({.budget = 1, .start = 0}, "start is 0"));
    CHECK(says({.budget = 1, .growth = 1}, "growth is 1"));
    CHECK(says({.budget = 1, .max_trials = 0}, "max_trials is 0"));
}
