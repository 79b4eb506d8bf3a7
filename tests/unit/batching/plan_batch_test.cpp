// SPDX-License-Identifier: MIT
#include <demi/batching/plan_batch.hpp>
#include <demi/batching/simulated_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <new>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <support/catch.hpp>
#include <vector>

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::size_t line(std::size_t batch) { return (100 + 10 * batch) * mib; }

/// The step of an engine whose memory is simulated.
template <class Memory>
auto step_on(Memory& memory) {
    return [&memory](demi::trial& trial) { memory.step(trial.batch_size()); };
}

template <class Curve>
demi::batch_plan plan_on(Curve curve, const demi::simulated_memory_settings& device,
                         const demi::batch_plan_settings& settings) {
    demi::simulated_memory memory(curve, device);
    return demi::plan_batch(memory, settings, step_on(memory));
}

bool ran(const demi::batch_plan& plan, std::size_t size) {
    for (const demi::trial_record& trial : plan.certificate.trials) {
        if (trial.size == size && trial.verdict == demi::trial_verdict::fit) return true;
    }
    return false;
}

bool runs_only_proven_sizes(const demi::batch_plan& plan, std::size_t batch) {
    for (const demi::micro_batch piece : plan.split(batch)) {
        if (!ran(plan, piece.size)) return false;
    }
    return true;
}

template <class Failure, class Call>
std::string message_of(Call call) {
    try {
        call();
    } catch (const Failure& failure) {
        return failure.what();
    }
    return "nothing was thrown";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// An exception that keeps the memory of the failed step alive.
class owning_failure : public std::bad_alloc {
public:
    explicit owning_failure(std::shared_ptr<std::pmr::vector<char>> memory)
        : memory_(std::move(memory)) {}

private:
    std::shared_ptr<std::pmr::vector<char>> memory_;
};

struct engine_error {};

}  // namespace

TEST_CASE("Without a global batch the plan is the largest batch that fits") {
    const auto plan = plan_on(line, {.capacity = 1100 * mib}, {});
    CHECK(plan.micro_batch == 100);
    CHECK(plan.global_batch == 100);
    CHECK(plan.accumulation_steps() == 1);
    CHECK(plan.peak == 1100 * mib);
    CHECK(plan.margin == 0);
    CHECK(plan.not_returned == 0);
    CHECK(plan.certificate.failure->size == 101);
}

TEST_CASE("The design's loop: a global batch, a metered engine and a void step") {
    demi::memory_meter meter;
    std::pmr::vector<char> weights(1000, &meter);
    demi::metered_budget probe{meter, 20000};
    const auto plan = demi::plan_batch(probe, {.global_batch = 512}, [&](demi::trial& trial) {
        std::pmr::vector<char> activations(150 * trial.batch_size(), &meter);
    });
    CHECK(plan.global_batch == 512);
    CHECK(plan.certificate.size == 126);
    CHECK(plan.micro_batch == 103);
    CHECK(plan.peak == 1000 + 103 * 150);
    CHECK(runs_only_proven_sizes(plan, 512));
    float weights_sum = 0;
    for (const auto micro : plan.split(std::vector<int>(512))) weights_sum += micro.weight;
    CHECK(weights_sum == 1.0f);
    CHECK(meter.current() == 1000);
}

TEST_CASE("The global batch stays exact and equal steps are preferred (P8)") {
    const auto six = [](std::size_t batch) { return batch * mib; };
    const auto plan = plan_on(six, {.capacity = 6 * mib}, {.global_batch = 32});
    CHECK(plan.certificate.size == 6);
    CHECK(plan.micro_batch == 4);
    CHECK(plan.accumulation_steps() == 8);

    const auto uneven = plan_on(six, {.capacity = 6 * mib}, {.global_batch = 31});
    CHECK(uneven.micro_batch == 6);
    CHECK(uneven.accumulation_steps() == 6);
    CHECK(ran(uneven, 1));

    const auto whole = plan_on(six, {.capacity = 64 * mib}, {.global_batch = 32});
    CHECK(whole.micro_batch == 32);
    CHECK(whole.certificate.end == demi::search_end::maximum);
}

TEST_CASE("Every size that training uses has run within the budget") {
    std::mt19937_64 random(4);
    std::size_t wrong = 0;
    for (int i = 0; i < 3000; ++i) {
        const std::size_t fixed = random() % 800;
        const std::size_t slope = 1 + random() % 40;
        const std::size_t bump_at = random() % 200;
        const std::size_t bump = random() % 2 == 0 ? 0 : random() % 600;
        const auto bumpy = [=](std::size_t batch) {
            const bool in_bump = batch >= bump_at && batch < 2 * bump_at;
            return (fixed + slope * batch + (in_bump ? bump : 0)) * mib;
        };
        const demi::batch_plan_settings settings{.global_batch = random() % 3000,
                                                 .data_size = random() % 5000,
                                                 .smallest_micro_batch = 1 + random() % 2,
                                                 .margin = random() % 50 * mib};
        demi::simulated_memory memory(bumpy, {.capacity = 2000 * mib});
        try {
            const auto plan = demi::plan_batch(memory, settings, step_on(memory));
            if (!runs_only_proven_sizes(plan, plan.global_batch)) ++wrong;
            const std::size_t tail = settings.data_size % plan.global_batch;
            if (settings.data_size > 0 && tail > 0 && !runs_only_proven_sizes(plan, tail)) ++wrong;
            if (settings.global_batch > 0 && plan.global_batch != settings.global_batch) ++wrong;
            if (plan.peak > 2000 * mib - *settings.margin) ++wrong;
            for (const auto piece : plan.split(plan.global_batch)) {
                if (bumpy(piece.size) > plan.peak) ++wrong;
            }
        } catch (const demi::does_not_fit& failure) {
            if (bumpy(settings.smallest_micro_batch) <= failure.budget()) ++wrong;
        } catch (const demi::invalid_argument&) {
            const bool too_small = settings.smallest_micro_batch > 1 &&
                                   (settings.global_batch == 1 || settings.data_size == 1);
            if (!too_small) ++wrong;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("A smaller batch that needs more is found out and avoided (P58)") {
    const auto workspace = [](std::size_t batch) {
        return (500 + 10 * batch + (batch >= 64 && batch < 128 ? 1500 : 300)) * mib;
    };
    const auto plan =
        plan_on(workspace, {.capacity = 2400 * mib}, {.global_batch = 200, .start = 150});
    CHECK(plan.certificate.size == 160);
    CHECK(plan.certificate.non_monotone);
    CHECK(plan.micro_batch == 50);
    CHECK(runs_only_proven_sizes(plan, 200));
}

TEST_CASE("When nothing fits the error carries the evidence (P1, P26)") {
    demi::simulated_memory memory([](std::size_t batch) { return (899 + batch) * mib; },
                                  {.capacity = 800 * mib});
    try {
        demi::plan_batch(memory, {.global_batch = 64}, step_on(memory));
        CHECK(false);
    } catch (const demi::does_not_fit& failure) {
        CHECK(failure.smallest().size == 1);
        CHECK(failure.smallest().verdict == demi::trial_verdict::out_of_memory);
        CHECK(failure.smallest().bytes == 900 * mib);
        CHECK(failure.budget() == 800 * mib);
        CHECK(contains(failure.what(), "batch 1: out of memory, at least 900.0 MiB"));
        CHECK(contains(failure.what(), "expected at most 800.0 MiB"));
    }
    CHECK(memory.steps() <= 4);
}

TEST_CASE("A late failure in training is planned anew from where it stands, leak included (P2)") {
    demi::simulated_memory memory(line, {.capacity = 1100 * mib, .leak_per_failure = 600 * mib});
    const auto first = demi::plan_batch(
        memory, {.maximum = 8, .smallest_micro_batch = 8, .updates_per_trial = 1}, step_on(memory));
    CHECK(first.micro_batch == 8);
    CHECK_FALSE(memory.try_step(200) == 0);
    CHECK_THROWS_AS(memory.step(100), demi::out_of_memory);
    CHECK_THROWS_AS(demi::plan_batch(memory, {.global_batch = 8}, step_on(memory)), demi::error);
}

TEST_CASE("Memory that does not come back after a failed trial is reported") {
    const auto plan =
        plan_on(line, {.capacity = 1100 * mib, .leak_per_failure = 50 * mib}, {.start = 200});
    CHECK(plan.not_returned >= 50 * mib);
    CHECK(plan.not_returned % (50 * mib) == 0);
    CHECK(plan.micro_batch <= 95);
    CHECK(contains(describe(plan), "were not free again"));
}

TEST_CASE("Text that says out of memory is recognised, and so is the engine's own type (P5)") {
    const auto fails_above = [](std::size_t limit, auto fail) {
        return [limit, fail](demi::trial& trial) {
            if (trial.batch_size() > limit) fail();
            trial.report_peak(trial.batch_size());
        };
    };
    const demi::fixed_budget budget{1000};
    const auto by_text = demi::plan_batch(
        budget, {},
        fails_above(30, [] { throw std::runtime_error("XYZ backend Out Of Memory (3 of 4)"); }));
    CHECK(by_text.micro_batch == 30);
    const auto by_type =
        demi::plan_batch(budget, {.also_out_of_memory = demi::is_thrown<engine_error>},
                         fails_above(30, [] { throw engine_error(); }));
    CHECK(by_type.micro_batch == 30);
    CHECK_THROWS_AS(demi::plan_batch(budget, {}, fails_above(30, [] { throw engine_error(); })),
                    engine_error);
}

TEST_CASE("Failures that are not about memory reach the caller unchanged (P64)") {
    const demi::fixed_budget budget{1000};
    CHECK(message_of<std::logic_error>([&] {
              demi::plan_batch(budget, {}, [](demi::trial&) {
                  throw std::logic_error("batch argument is not mapped");
              });
          }) == "batch argument is not mapped");
}

TEST_CASE("The exception of a failed trial is gone before the next one starts (P38)") {
    demi::memory_meter meter{{.limit = 1000}};
    demi::metered_budget probe{meter, 1000};
    std::size_t held_at_start = 0;
    const auto plan = demi::plan_batch(probe, {.start = 64}, [&](demi::trial& trial) {
        held_at_start = std::max(held_at_start, meter.current());
        auto buffer = std::make_shared<std::pmr::vector<char>>(600, &meter);
        if (trial.batch_size() > 40) throw owning_failure(std::move(buffer));
    });
    CHECK(held_at_start == 0);
    CHECK(plan.micro_batch == 40);
}

TEST_CASE("A trial that takes no updates proves nothing (P16)") {
    const demi::fixed_budget budget{1000};
    const std::string text = message_of<demi::invalid_trial>([&] {
        demi::plan_batch(budget, {}, [](demi::trial& trial) {
            trial.report_peak(1);
            trial.report_updates(0);
        });
    });
    CHECK(contains(text, "batch 8"));
    CHECK(contains(text, "too few updates in 34 calls, expected 2"));
}

TEST_CASE("Optimizer state that appears after skipped steps is seen (P59)") {
    std::size_t state = 0;
    int skipped = 0;
    const auto step = [&](demi::trial& trial) {
        const bool skip = skipped < 3;
        skipped += skip ? 1 : 0;
        trial.report_updates(skip ? 0 : 1);
        trial.report_peak(100 + state + 10 * trial.batch_size());
        if (!skip) state = 200;
    };
    const auto plan = demi::plan_batch(demi::fixed_budget{1000}, {.start = 90}, step);
    CHECK(plan.micro_batch == 70);

    const auto late =
        plan_on(line, {.capacity = 1100 * mib, .late_bytes = 200 * mib}, {.start = 100});
    CHECK(late.micro_batch == 80);
}

TEST_CASE("Without any peak the planner says how to give one") {
    const std::string text = message_of<demi::invalid_trial>(
        [] { demi::plan_batch(demi::fixed_budget{1000}, {}, [](demi::trial&) {}); });
    CHECK(contains(text, "batch 8 gave no peak"));
    CHECK(contains(text, "report_peak"));
    CHECK(contains(text, "metered_budget"));
}

TEST_CASE("A peak may be returned, and the larger of measured and reported counts (P41)") {
    const auto returned = demi::plan_batch(
        demi::fixed_budget{1000}, {}, [](demi::trial& trial) { return 10 * trial.batch_size(); });
    CHECK(returned.micro_batch == 100);

    demi::simulated_memory memory(line, {.capacity = 1100 * mib});
    const auto plan = demi::plan_batch(memory, {}, [&](demi::trial& trial) {
        memory.step(trial.batch_size());
        trial.report_peak(line(trial.batch_size()) + 300 * mib);
    });
    CHECK(plan.micro_batch == 70);
}

TEST_CASE("An engine without exceptions reports that it was refused") {
    demi::simulated_memory memory(line, {.capacity = 1100 * mib});
    const auto plan = demi::plan_batch(memory, {.start = 300}, [&](demi::trial& trial) {
        if (const auto needed = memory.try_step(trial.batch_size())) {
            trial.report_out_of_memory(needed);
        }
    });
    CHECK(plan.micro_batch == 100);
    CHECK(plan.certificate.trials[0] ==
          demi::trial_record{300, demi::trial_verdict::out_of_memory, 3100 * mib});
}

TEST_CASE("A margin keeps memory unused, and most failures become harmless") {
    const auto plan = plan_on(line, {.capacity = 1100 * mib}, {.margin = 100 * mib});
    CHECK(plan.micro_batch == 90);
    CHECK(plan.margin == 100 * mib);
    CHECK(plan.certificate.budget == 1000 * mib);
    CHECK(plan.certificate.failure->verdict == demi::trial_verdict::over_budget);
}

TEST_CASE("A neighbour lowers the budget and is not counted as own use (P40)") {
    const auto constant = plan_on(line, {.capacity = 1100 * mib, .co_tenant = 770 * mib}, {});
    CHECK(constant.micro_batch == 23);
    CHECK(constant.peak == 330 * mib);

    const auto sudden =
        plan_on(line, {.capacity = 1100 * mib, .co_tenant = 500 * mib, .co_tenant_step = 5}, {});
    CHECK(sudden.micro_batch == 50);
    CHECK(sudden.certificate.budget == 600 * mib);
}

TEST_CASE("Noise never makes an unproven plan") {
    std::size_t wrong = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const auto plan = plan_on(line, {.capacity = 1100 * mib, .noise = 20 * mib, .seed = seed},
                                  {.global_batch = 90});
        if (!runs_only_proven_sizes(plan, 90) || plan.peak > 1100 * mib) ++wrong;
    }
    CHECK(wrong == 0);
}

TEST_CASE("The plan is not larger than the data set, whose last batch is tried too (P31)") {
    const auto plan = plan_on(line, {.capacity = 2100 * mib}, {.data_size = 37});
    CHECK(plan.micro_batch == 37);
    const auto lattice = plan_on(line, {.capacity = 2100 * mib}, {.data_size = 37, .multiple = 8});
    CHECK(lattice.micro_batch == 32);
    CHECK(ran(lattice, 5));
    const auto epoch =
        plan_on(line, {.capacity = 420 * mib}, {.global_batch = 64, .data_size = 1000});
    CHECK(runs_only_proven_sizes(epoch, 64));
    CHECK(runs_only_proven_sizes(epoch, 1000 % 64));
}

TEST_CASE("No micro-batch of one sample is planned or tried when two are needed (P61)") {
    demi::simulated_memory memory(line, {.capacity = 130 * mib});
    std::set<std::size_t> tried;
    const auto plan = demi::plan_batch(memory, {.global_batch = 1003, .smallest_micro_batch = 2},
                                       [&](demi::trial& trial) {
                                           tried.insert(trial.batch_size());
                                           memory.step(trial.batch_size());
                                       });
    CHECK(plan.micro_batch == 3);
    CHECK(*tried.begin() == 2);
    std::size_t twos = 0;
    for (const auto piece : plan.split(1003)) twos += piece.size == 2 ? 1 : 0;
    CHECK(twos == 2);
    CHECK(plan.accumulation_steps() == 335);
}

TEST_CASE("A probe that can clean up does so after each failed trial (P55)") {
    struct runtime {
        demi::simulated_memory<std::size_t (*)(std::size_t)> memory;
        bool last_error = false;
        int recovered = 0;
        std::size_t free_bytes() const { return memory.free_bytes(); }
        std::size_t total_bytes() const { return memory.total_bytes(); }
        void reset_peak() { memory.reset_peak(); }
        std::size_t peak_bytes() const { return memory.peak_bytes(); }
        void recover() {
            last_error = false;
            ++recovered;
        }
    };
    runtime probe{{line, {.capacity = 1100 * mib}}};
    const auto plan = demi::plan_batch(probe, {.start = 300}, [&](demi::trial& trial) {
        if (probe.last_error) throw std::logic_error("an old error is still set");
        probe.last_error = line(trial.batch_size()) > 1100 * mib;
        probe.memory.step(trial.batch_size());
    });
    CHECK(plan.micro_batch == 100);
    CHECK(probe.recovered > 0);
}

TEST_CASE("A warm-up trial is run first and its peak forgotten (P22)") {
    bool cold = true;
    const auto step = [&](demi::trial& trial) {
        trial.report_peak((cold ? 5000 : 100) + 10 * trial.batch_size());
        cold = false;
    };
    const auto plan = demi::plan_batch(demi::fixed_budget{1000}, {.warm_up = true}, step);
    CHECK(plan.micro_batch == 90);
    CHECK_FALSE(plan.certificate.non_monotone);
    CHECK(plan.certificate.trials[0].bytes == 180);
}

TEST_CASE("Each trial runs the updates asked for") {
    std::size_t calls = 0;
    const auto plan = demi::plan_batch(demi::fixed_budget{1000},
                                       {.maximum = 8, .updates_per_trial = 5}, [&](demi::trial&) {
                                           ++calls;
                                           return std::size_t{1};
                                       });
    CHECK(plan.certificate.trials.size() == 1);
    CHECK(calls == 5);
}

TEST_CASE("Settings that leave nothing to try are refused with the value") {
    const auto step = [](demi::trial&) { return std::size_t{1}; };
    const auto text = [&](const demi::batch_plan_settings& settings) {
        return message_of<demi::invalid_argument>(
            [&] { demi::plan_batch(demi::fixed_budget{1000}, settings, step); });
    };
    CHECK(contains(text({.margin = 1000}), "margin is 1000 bytes"));
    CHECK(contains(text({.global_batch = 4, .multiple = 8}), "maximum is 4"));
    CHECK(contains(text({.maximum = 0}), "maximum is 0"));
    CHECK(contains(text({.multiple = 0}), "multiple is 0"));
    CHECK(contains(text({.updates_per_trial = 0}), "updates_per_trial is 0"));
    CHECK(contains(text({.start = 0}), "start is 0"));
    CHECK_THROWS_AS(demi::plan_batch(demi::fixed_budget{0}, {}, step), demi::invalid_argument);
}
