// SPDX-License-Identifier: MIT
#include <demi/batching/simulated_memory.hpp>

#include <cstddef>
#include <string>
#include <support/catch.hpp>
#include <vector>

namespace {

std::size_t line(std::size_t batch) { return 100 + 10 * batch; }

}  // namespace

TEST_CASE("Simulated memory follows its curve up to the capacity") {
    demi::simulated_memory memory(line, {.capacity = 200});
    CHECK(memory.free_bytes() == 200);
    CHECK(memory.total_bytes() == 200);
    memory.step(10);
    CHECK(memory.peak_bytes() == 200);
    memory.reset_peak();
    CHECK(memory.peak_bytes() == 0);
    std::string text;
    try {
        memory.step(11);
    } catch (const demi::out_of_memory& refusal) {
        text = refusal.what();
        CHECK(refusal.requested_bytes() == 210);
    }
    CHECK(text.find("batch 11 needs 210 bytes") != std::string::npos);
    CHECK(text.find("at most 200") != std::string::npos);
    CHECK(memory.try_step(10) == 0);
    CHECK(memory.steps() == 3);
}

TEST_CASE("Noise is bounded, and the same for the same seed") {
    const auto peaks = [](std::uint64_t seed) {
        demi::simulated_memory memory(line, {.capacity = 10000, .noise = 50, .seed = seed});
        std::vector<std::size_t> result;
        for (int i = 0; i < 100; ++i) {
            memory.reset_peak();
            memory.step(1);
            result.push_back(memory.peak_bytes());
        }
        return result;
    };
    const auto first = peaks(1);
    CHECK(first == peaks(1));
    CHECK(first != peaks(2));
    std::size_t outside = 0;
    for (const std::size_t peak : first) outside += peak < 110 || peak > 160 ? 1 : 0;
    CHECK(outside == 0);
}

TEST_CASE("A co-tenant lowers what is free from its step on and is not own use") {
    demi::simulated_memory memory(line, {.capacity = 200, .co_tenant = 60, .co_tenant_step = 2});
    CHECK(memory.free_bytes() == 200);
    memory.step(10);
    CHECK_THROWS_AS(memory.step(5), demi::out_of_memory);
    CHECK(memory.free_bytes() == 140);
    memory.reset_peak();
    CHECK(memory.peak_bytes() == 0);
}

TEST_CASE("Failed steps leak and late allocations stay") {
    demi::simulated_memory memory(
        line, {.capacity = 300, .leak_per_failure = 20, .late_bytes = 50, .late_step = 2});
    memory.step(1);
    CHECK(memory.free_bytes() == 300);
    memory.step(1);
    CHECK(memory.peak_bytes() == 160);
    CHECK(memory.free_bytes() == 250);
    CHECK(memory.try_step(100) == 1150);
    CHECK(memory.free_bytes() == 230);
    memory.reset_peak();
    CHECK(memory.peak_bytes() == 70);
}
