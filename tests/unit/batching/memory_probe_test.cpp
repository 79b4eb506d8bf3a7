// SPDX-License-Identifier: MIT
#include <demi/batching/memory_probe.hpp>

#include <cstddef>
#include <support/catch.hpp>

namespace {

struct physical {
    std::size_t free_bytes() const { return 700; }
    std::size_t total_bytes() const { return 1000; }
    std::size_t suggested_margin() const { return 50; }
    void recover() {}
};

struct blind {
    std::size_t free_bytes() const { return 700; }
};

static_assert(demi::memory_probe<physical>);
static_assert(!demi::memory_probe<blind>);
static_assert(!demi::peak_memory_probe<physical>);
static_assert(!demi::peak_memory_probe<demi::fixed_budget>);
static_assert(demi::recovering_memory_probe<physical>);
static_assert(!demi::recovering_memory_probe<demi::fixed_budget>);

}  // namespace

TEST_CASE("A fixed budget is all free and suggests no margin") {
    demi::fixed_budget budget{123};
    CHECK(budget.free_bytes() == 123);
    CHECK(budget.total_bytes() == 123);
    CHECK(demi::suggested_margin(budget) == 0);
}

TEST_CASE("A metered budget is the bytes stated less what the meter has in use") {
    demi::memory_meter meter;
    demi::metered_budget budget(meter, 1000);
    void* const held = meter.allocate(300);
    CHECK(budget.free_bytes() == 700);
    CHECK(budget.total_bytes() == 1000);
    meter.deallocate(meter.allocate(500), 500);
    CHECK(budget.peak_bytes() == 800);
    budget.reset_peak();
    CHECK(budget.peak_bytes() == 300);

    void* const more = meter.allocate(900);
    CHECK(budget.free_bytes() == 0);
    meter.deallocate(more, 900);
    meter.deallocate(held, 300);
}

TEST_CASE("A metered probe takes free memory from its probe and peaks from its meter") {
    demi::memory_meter meter;
    demi::metered_probe probe(meter, physical{});
    void* const held = meter.allocate(300);
    CHECK(probe.free_bytes() == 700);
    CHECK(probe.total_bytes() == 1000);
    CHECK(probe.peak_bytes() == 300);
    CHECK(demi::suggested_margin(probe) == 50);
    meter.deallocate(held, 300);
}

TEST_CASE("A metered probe recovers as its probe does, if that can") {
    struct counted : physical {
        std::size_t* calls;
        void recover() { ++*calls; }
    };
    demi::memory_meter meter;
    std::size_t calls = 0;
    demi::metered_probe probe(meter, counted{{}, &calls});
    probe.recover();
    CHECK(calls == 1);
    static_assert(demi::recovering_memory_probe<demi::metered_probe<physical>>);
    static_assert(!demi::recovering_memory_probe<demi::metered_probe<demi::fixed_budget>>);
}
