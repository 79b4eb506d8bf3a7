// SPDX-License-Identifier: MIT
#include <demi/host/parallel.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <support/catch.hpp>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

std::vector<int> visits(const demi::host_executor& executor, std::size_t count) {
    std::vector<std::atomic<int>> seen(count);
    executor.run(count, [&](std::size_t i) { ++seen[i]; });
    return {seen.begin(), seen.end()};
}

}  // namespace

TEST_CASE("an executor runs every task exactly once before it returns") {
    for (const std::size_t concurrency : {std::size_t{1}, std::size_t{2}, std::size_t{7}}) {
        const auto executor = demi::make_thread_executor(concurrency);
        for (std::size_t count = 0; count < 70; ++count) {
            CHECK(visits(executor, count) == std::vector<int>(count, 1));
        }
    }
    CHECK(visits(demi::default_executor(), 1000) == std::vector<int>(1000, 1));
}

TEST_CASE("a team survives thousands of short runs") {
    const auto executor = demi::make_thread_executor(3);
    std::atomic<int> total{0};
    for (int i = 0; i < 5000; ++i) executor.run(4, [&](std::size_t) { ++total; });
    CHECK(total == 20000);
}

TEST_CASE("a team uses its threads") {
    const auto executor = demi::make_thread_executor(2);
    // Two tasks that wait for each other can only finish side by side.
    std::atomic<int> arrived{0};
    executor.run(2, [&](std::size_t) {
        ++arrived;
        while (arrived < 2) std::this_thread::yield();
    });
    CHECK(arrived == 2);
}

TEST_CASE("a run inside a task stays on its thread and completes") {
    const auto executor = demi::make_thread_executor(3);
    std::atomic<int> inner{0};
    std::atomic<bool> same_thread{true};
    executor.run(8, [&](std::size_t) {
        const auto outer = std::this_thread::get_id();
        executor.run(5, [&](std::size_t) {
            ++inner;
            if (std::this_thread::get_id() != outer) same_thread = false;
        });
    });
    CHECK(inner == 40);
    CHECK(same_thread);
}

TEST_CASE("several threads may run tasks on one executor") {
    const auto executor = demi::make_thread_executor(2);
    std::atomic<int> total{0};
    std::vector<std::thread> callers;
    for (int t = 0; t < 4; ++t) {
        callers.emplace_back([&] {
            for (int i = 0; i < 200; ++i) executor.run(3, [&](std::size_t) { ++total; });
        });
    }
    for (auto& caller : callers) caller.join();
    CHECK(total == 2400);
}

TEST_CASE("an exception from a task comes out of run, and the executor goes on working") {
    const auto check = [](const demi::host_executor& executor) {
        for (const std::size_t bad : {std::size_t{0}, std::size_t{13}, std::size_t{49}}) {
            std::string text;
            try {
                executor.run(50, [&](std::size_t i) {
                    if (i == bad) throw std::runtime_error("task " + std::to_string(i));
                });
            } catch (const std::runtime_error& failure) {
                text = failure.what();
            }
            CHECK(text == "task " + std::to_string(bad));
        }
        CHECK(visits(executor, 9) == std::vector<int>(9, 1));
    };
    check(demi::make_thread_executor(1));
    check(demi::make_thread_executor(3));
    check(demi::default_executor());
    check(demi::limit_concurrency(demi::make_thread_executor(3), 2));
}

TEST_CASE("a limited executor uses no more threads than it may") {
    const auto limited = demi::limit_concurrency(demi::make_thread_executor(7), 2);
    CHECK(limited.concurrency == 2);
    std::mutex guard;
    std::set<std::thread::id> threads;
    limited.run(200, [&](std::size_t) {
        const std::lock_guard lock(guard);
        threads.insert(std::this_thread::get_id());
    });
    CHECK(threads.size() <= 2);
    CHECK(visits(limited, 31) == std::vector<int>(31, 1));
    CHECK(demi::limit_concurrency(demi::make_thread_executor(2), 5).concurrency == 2);
}

TEST_CASE("the number of threads in the environment must be a number above 0") {
    CHECK(demi::detail::parse_thread_count("12") == 12);
    for (const char* text : {"", "0", "-1", "many", "3x", "99999999999999999999999"}) {
        std::string reason;
        try {
            demi::detail::parse_thread_count(text);
        } catch (const demi::invalid_argument& failure) {
            reason = failure.what();
        }
        CHECK(reason.find("DEMI_HOST_THREADS") != std::string::npos);
        CHECK(reason.find('"' + std::string(text) + '"') != std::string::npos);
    }
}

TEST_CASE("the process has at least one processor and one thread") {
    CHECK(demi::detail::available_processors() >= 1);
    CHECK(demi::default_executor().concurrency >= 1);
}

#if defined(__linux__) && !defined(_OPENMP)
TEST_CASE("a forked child works on its own thread and ends") {
    auto executor = std::make_unique<demi::host_executor>(demi::make_thread_executor(3));
    visits(*executor, 10);
    const pid_t child = fork();
    if (child == 0) {
        const bool done = visits(*executor, 10) == std::vector<int>(10, 1);
        executor.reset();
        _exit(done ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}
#endif
