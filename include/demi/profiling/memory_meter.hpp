// SPDX-License-Identifier: MIT
/// A memory resource that counts: bytes in use, the peak, and an optional limit.
#pragma once

#include <demi/core/error.hpp>

#include <atomic>
#include <cstddef>
#include <limits>
#include <memory_resource>
#include <new>

namespace demi::inline DEMI_ABI {

struct memory_meter_settings {
    /// Bytes in use that a request may not exceed.
    std::size_t limit = std::numeric_limits<std::size_t>::max();
    /// Where the memory comes from; null stands for `std::pmr::get_default_resource()`.
    std::pmr::memory_resource* upstream = nullptr;
};

/// Counts what passes through it to another memory resource.
///
/// Counted are the bytes asked for, without what the upstream resource rounds up. The counters may
/// be read and moved from any thread; memory may be taken from several threads when the upstream
/// resource allows it. Exceptions of the upstream resource other than `std::bad_alloc` pass.
class memory_meter : public std::pmr::memory_resource {
public:
    explicit memory_meter(const memory_meter_settings& settings = {})
        : upstream_(settings.upstream ? settings.upstream : std::pmr::get_default_resource()),
          limit_(settings.limit) {}

    memory_meter(const memory_meter&) = delete;
    memory_meter& operator=(const memory_meter&) = delete;

    /// Bytes in use.
    std::size_t current() const noexcept { return current_.load(std::memory_order_relaxed); }

    /// The most bytes in use since construction or the last `reset_peak()`.
    std::size_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }

    /// Bytes ever handed out.
    std::size_t total_allocated() const noexcept { return total_.load(std::memory_order_relaxed); }

    /// Requests ever granted.
    std::size_t allocation_count() const noexcept { return count_.load(std::memory_order_relaxed); }

    std::size_t limit() const noexcept { return limit_; }

    std::pmr::memory_resource* upstream() const noexcept { return upstream_; }

    /// Lets the peak start again from what is in use now.
    void reset_peak() noexcept { peak_.store(current(), std::memory_order_relaxed); }

private:
    /// Throws `out_of_memory`, with nothing counted, above the limit or when the upstream resource
    /// has no memory.
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        const std::size_t in_use = reserve(bytes);
        const reservation held{*this, bytes};
        void* const memory = allocate_upstream(bytes, alignment);
        held.granted = true;
        raise_peak(in_use);
        total_.fetch_add(bytes, std::memory_order_relaxed);
        count_.fetch_add(1, std::memory_order_relaxed);
        return memory;
    }

    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
        upstream_->deallocate(memory, bytes, alignment);
        current_.fetch_sub(bytes, std::memory_order_relaxed);
    }

    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return this == &other;
    }

    /// Gives a reservation back when the upstream resource throws.
    struct reservation {
        memory_meter& meter;
        std::size_t bytes;
        mutable bool granted = false;

        ~reservation() {
            if (!granted) meter.current_.fetch_sub(bytes, std::memory_order_relaxed);
        }
    };

    /// Compares before it adds, so that a request too large does not make another thread's fail.
    std::size_t reserve(std::size_t bytes) {
        std::size_t before = current();
        do {
            if (bytes > limit_ - before) refuse(bytes, before);
        } while (
            !current_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
        return before + bytes;
    }

    void raise_peak(std::size_t in_use) {
        std::size_t peak = this->peak();
        while (peak < in_use &&
               !peak_.compare_exchange_weak(peak, in_use, std::memory_order_relaxed)) {
        }
    }

    void* allocate_upstream(std::size_t bytes, std::size_t alignment) {
#if DEMI_EXCEPTIONS
        try {
            return upstream_->allocate(bytes, alignment);
        } catch (const std::bad_alloc&) {
        }
        detail::raise(
            out_of_memory(detail::message("memory_meter: the upstream resource refused ", bytes,
                                          " bytes, with ", current() - bytes, " bytes in use"),
                          bytes));
#else
        return upstream_->allocate(bytes, alignment);
#endif
    }

    [[noreturn, gnu::cold]] void refuse(std::size_t bytes, std::size_t in_use) const {
        detail::raise(out_of_memory(
            detail::message("memory_meter: out of memory: ", bytes, " bytes requested with ",
                            in_use, " in use, expected at most ", limit_, " in all"),
            bytes));
    }

    std::pmr::memory_resource* upstream_;
    std::size_t limit_;
    std::atomic<std::size_t> current_{0};
    std::atomic<std::size_t> peak_{0};
    std::atomic<std::size_t> total_{0};
    std::atomic<std::size_t> count_{0};
};

}  // namespace demi::inline DEMI_ABI
