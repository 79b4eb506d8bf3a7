// SPDX-License-Identifier: MIT
/// How the host backend gets its threads: an executor that an engine can replace by one lambda.
#pragma once

#include <demi/core/error.hpp>
#include <demi/host/detail/thread_team.hpp>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#endif

namespace demi::inline DEMI_ABI {

/// Runs independent tasks, possibly at the same time.
///
/// `run(count, task)` calls `task(i)` once for every `i` below `count`, on any thread and in any
/// order, and returns after all of them. It may be called from several threads and from inside a
/// task. An exception that a task throws comes out of `run`.
struct host_executor {
    /// Tasks that can make progress at the same time, at least 1.
    std::size_t concurrency = 1;
    std::function<void(std::size_t count, const std::function<void(std::size_t)>& task)> run;
};

namespace detail {

/// Handing over to a second thread costs about a microsecond: smaller passes stay on the caller.
inline constexpr std::size_t parallel_threshold = std::size_t{128} * 1024;

/// Processors that this process may use.
inline std::size_t available_processors() {
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        return static_cast<std::size_t>(CPU_COUNT(&allowed));
    }
#endif
    const unsigned count = std::thread::hardware_concurrency();
    return count == 0 ? 1 : count;
}

inline std::size_t parse_thread_count(std::string_view text) {
    std::size_t count = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (failure != std::errc{} || end != text.data() + text.size() || count == 0) {
        raise(invalid_argument(
            message("DEMI_HOST_THREADS: \"", text, "\", expected a whole number above 0")));
    }
    return count;
}

inline std::size_t default_concurrency(std::size_t otherwise) {
    const char* wanted = std::getenv("DEMI_HOST_THREADS");
    return wanted == nullptr ? otherwise : parse_thread_count(wanted);
}

using executor_factory = host_executor (*)();

/// How the default executor is made. A translation unit compiled with OpenMP replaces this before
/// `main`, so that every inline function is the same with and without OpenMP.
inline executor_factory& default_executor_factory();

}  // namespace detail

/// An executor with threads of its own, `concurrency - 1` of them, joined when the last copy goes.
/// A run from inside a task, while the threads are busy, or in a forked child stays on its caller.
inline host_executor make_thread_executor(std::size_t concurrency) {
    auto team = std::make_shared<detail::thread_team>(concurrency);
    return {concurrency, [team = std::move(team)](std::size_t count, const auto& task) {
                team->run(count, task);
            }};
}

/// An executor that uses at most `concurrency` threads of another one.
inline host_executor limit_concurrency(host_executor executor, std::size_t concurrency) {
    if (executor.concurrency <= concurrency) return executor;
    auto limited = [run = std::move(executor.run), concurrency](std::size_t count,
                                                                const auto& task) {
        detail::task_queue queue(count, task);
        run(count < concurrency ? count : concurrency, [&](std::size_t) { queue.drain(); });
        queue.rethrow();
    };
    return {concurrency, std::move(limited)};
}

/// The executor of the process: OpenMP's threads when a translation unit with this header is
/// compiled with OpenMP, a team of our own otherwise; made at the first call. As many threads as
/// the process may use processors, or `DEMI_HOST_THREADS` of the environment.
inline const host_executor& default_executor() {
    static const host_executor executor = detail::default_executor_factory()();
    return executor;
}

namespace detail {

inline host_executor make_default_thread_executor() {
    return make_thread_executor(default_concurrency(available_processors()));
}

inline executor_factory& default_executor_factory() {
    static executor_factory factory = make_default_thread_executor;
    return factory;
}

#if defined(_OPENMP)

inline host_executor make_openmp_executor() {
    const auto threads = static_cast<std::size_t>(omp_get_max_threads());
    const std::size_t concurrency = default_concurrency(threads == 0 ? 1 : threads);
    return {concurrency, [concurrency](std::size_t count, const auto& task) {
                task_queue queue(count, task);
                if (count < 2 || omp_in_parallel() != 0) {
                    queue.drain();
                } else {
                    const int team = static_cast<int>(count < concurrency ? count : concurrency);
#pragma omp parallel num_threads(team)
                    queue.drain();
                }
                queue.rethrow();
            }};
}

inline const bool openmp_is_default = [] {
    default_executor_factory() = make_openmp_executor;
    return true;
}();

#endif

}  // namespace detail

}  // namespace demi::inline DEMI_ABI
