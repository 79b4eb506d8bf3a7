// SPDX-License-Identifier: MIT
#include <demi/profiling/memory_meter.hpp>

#include <cstddef>
#include <memory_resource>
#include <new>
#include <string>
#include <support/catch.hpp>
#include <thread>
#include <vector>

namespace {

/// Refuses everything.
class empty_resource : public std::pmr::memory_resource {
    void* do_allocate(std::size_t, std::size_t) override { throw std::bad_alloc(); }
    void do_deallocate(void*, std::size_t, std::size_t) override {}
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return this == &other;
    }
};

}  // namespace

TEST_CASE("A memory meter counts bytes in use, the peak, the total and the requests") {
    demi::memory_meter meter;
    void* const first = meter.allocate(100);
    void* const second = meter.allocate(50, 64);
    CHECK(meter.current() == 150);
    meter.deallocate(first, 100);
    CHECK(meter.current() == 50);
    CHECK(meter.peak() == 150);
    CHECK(meter.total_allocated() == 150);
    CHECK(meter.allocation_count() == 2);

    meter.reset_peak();
    CHECK(meter.peak() == 50);
    void* const third = meter.allocate(25);
    CHECK(meter.peak() == 75);
    meter.deallocate(third, 25);
    meter.deallocate(second, 50, 64);
    CHECK(meter.current() == 0);
    CHECK(meter.peak() == 75);
}

TEST_CASE("A memory meter serves standard containers") {
    demi::memory_meter meter;
    {
        std::pmr::vector<double> values(1000, &meter);
        CHECK(meter.current() == 8000);
    }
    CHECK(meter.current() == 0);
    CHECK(meter.peak() == 8000);
}

TEST_CASE("A request above the limit is refused, named, and not counted") {
    demi::memory_meter meter{{.limit = 1000}};
    void* const held = meter.allocate(600);
    std::string text;
    std::size_t requested = 0;
    try {
        static_cast<void>(meter.allocate(401));
    } catch (const demi::out_of_memory& refusal) {
        text = refusal.what();
        requested = refusal.requested_bytes();
    }
    CHECK(requested == 401);
    CHECK(text.find("401 bytes requested") != std::string::npos);
    CHECK(text.find("600 in use") != std::string::npos);
    CHECK(text.find("at most 1000") != std::string::npos);
    CHECK(meter.current() == 600);
    CHECK(meter.peak() == 600);
    CHECK(meter.total_allocated() == 600);
    CHECK(meter.allocation_count() == 1);

    void* const rest = meter.allocate(400);
    CHECK(meter.current() == 1000);
    meter.deallocate(rest, 400);
    meter.deallocate(held, 600);
}

TEST_CASE("A request that overflows the counter is refused by a limit") {
    demi::memory_meter meter{{.limit = 1000}};
    void* const held = meter.allocate(10);
    CHECK_THROWS_AS(meter.allocate(static_cast<std::size_t>(-5)), demi::out_of_memory);
    CHECK(meter.current() == 10);
    meter.deallocate(held, 10);
}

TEST_CASE("An empty upstream resource becomes out_of_memory with nothing counted") {
    empty_resource empty;
    demi::memory_meter meter{{.upstream = &empty}};
    CHECK_THROWS_AS(meter.allocate(7), demi::out_of_memory);
    CHECK(meter.current() == 0);
    CHECK(meter.peak() == 0);
    CHECK(meter.total_allocated() == 0);
    CHECK(meter.allocation_count() == 0);
}

TEST_CASE("A memory meter equals only itself") {
    demi::memory_meter one;
    demi::memory_meter other;
    CHECK(one.is_equal(one));
    CHECK_FALSE(one.is_equal(other));
}

TEST_CASE("Counters stay exact and the limit holds when threads compete") {
    constexpr std::size_t limit = 1000;
    demi::memory_meter meter{{.limit = limit}};
    const auto work = [&meter] {
        for (int i = 0; i < 5000; ++i) {
            try {
                meter.deallocate(meter.allocate(300), 300);
            } catch (const demi::out_of_memory&) {
            }
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    CHECK(meter.current() == 0);
    CHECK(meter.peak() <= limit);
    CHECK(meter.total_allocated() == 300 * meter.allocation_count());
}
