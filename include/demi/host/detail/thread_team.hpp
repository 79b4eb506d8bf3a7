// SPDX-License-Identifier: MIT
/// A small team of threads that runs one list of tasks at a time.
#pragma once

#include <demi/core/config.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

namespace demi::inline DEMI_ABI {
namespace detail {

/// Tasks 0 to count - 1, taken one by one by any number of threads. After a task has thrown, the
/// rest is dropped.
class task_queue {
public:
    using task_type = std::function<void(std::size_t)>;

    task_queue(std::size_t count, const task_type& task) : task_(task), count_(count) {}

    /// Runs tasks until none is left.
    void drain() noexcept {
        for (;;) {
            const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
            if (index >= count_ || failed_.load(std::memory_order_relaxed)) return;
            run(index);
        }
    }

    /// Throws what a task has thrown; every thread has left `drain`.
    void rethrow() {
#if DEMI_EXCEPTIONS
        if (failure_) std::rethrow_exception(failure_);
#endif
    }

private:
    void run(std::size_t index) noexcept {
#if DEMI_EXCEPTIONS
        try {
            task_(index);
        } catch (...) {
            if (!failed_.exchange(true)) failure_ = std::current_exception();
        }
#else
        task_(index);
#endif
    }

    const task_type& task_;
    const std::size_t count_;
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> failed_{false};
    std::exception_ptr failure_;
};

/// The thread that calls `run` and `concurrency - 1` others, which start at the first call.
class thread_team {
public:
    explicit thread_team(std::size_t concurrency) : concurrency_(concurrency) {}
    thread_team(const thread_team&) = delete;
    thread_team& operator=(const thread_team&) = delete;

    ~thread_team() {
        if (process_ != current_process()) {
            // A forked child has the handles, but not the threads behind them: it cannot join.
            static_cast<void>(new std::vector<std::thread>(std::move(threads_)));
            return;
        }
        stopping_.store(true);
        wake();
        for (std::thread& thread : threads_) thread.join();
    }

    void run(std::size_t count, const task_queue::task_type& task) {
        task_queue queue(count, task);
        if (count < 2 || concurrency_ < 2 || process_ != current_process() ||
            busy_.exchange(true)) {
            queue.drain();
        } else {
            start_threads();
            queue_ = &queue;
            gate_.store(open);
            wake();
            queue.drain();
            gate_.fetch_and(~open);
            await(gate_, [](std::uint32_t gate) { return gate == 0; });
            busy_.store(false);
        }
        queue.rethrow();
    }

private:
    using counter = std::atomic<std::uint32_t>;

    static long current_process() {
#if __has_include(<unistd.h>)
        return static_cast<long>(::getpid());
#else
        return 0;
#endif
    }

    /// Waits for a value that pleases, at first without giving up the processor.
    template <class Predicate>
    static std::uint32_t await(const counter& watched, Predicate pleases) {
        constexpr int spins = 2000;
        for (int i = 0; i < spins; ++i) {
            const std::uint32_t value = watched.load();
            if (pleases(value)) return value;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        for (;;) {
            const std::uint32_t value = watched.load();
            if (pleases(value)) return value;
            watched.wait(value);
        }
    }

    void wake() {
        wakes_.fetch_add(1);
        wakes_.notify_all();
    }

    void start_threads() {
        if (!threads_.empty()) return;
        threads_.reserve(concurrency_ - 1);
        while (threads_.size() + 1 < concurrency_) {
#if DEMI_EXCEPTIONS
            try {
                threads_.emplace_back([this] { help(); });
            } catch (const std::system_error&) {
                return;  // fewer threads do the same work
            }
#else
            threads_.emplace_back([this] { help(); });
#endif
        }
    }

    void help() {
        for (std::uint32_t seen = 0;;) {
            seen = await(wakes_, [&](std::uint32_t wakes) { return wakes != seen; });
            if (stopping_.load()) return;
            if (enter()) {
                queue_->drain();
                if (gate_.fetch_sub(1) == 1) gate_.notify_one();
            }
        }
    }

    /// Counts this thread in, unless the tasks at hand are finished: nobody waits for a late one.
    bool enter() {
        std::uint32_t gate = gate_.load();
        while ((gate & open) != 0) {
            if (gate_.compare_exchange_weak(gate, gate + 1)) return true;
        }
        return false;
    }

    static constexpr std::uint32_t open = 0x80000000;

    const std::size_t concurrency_;
    const long process_ = current_process();
    std::vector<std::thread> threads_;
    task_queue* queue_ = nullptr;
    counter gate_{0};   ///< `open` while there are tasks, plus the number of helpers inside
    counter wakes_{0};  ///< changes when there is something to look at
    std::atomic<bool> busy_{false};
    std::atomic<bool> stopping_{false};
};

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
