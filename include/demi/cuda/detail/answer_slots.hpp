// SPDX-License-Identifier: MIT
/// Pinned places in host memory for values that a device sends.
#pragma once

#include <demi/cuda/device.hpp>

#include <cstddef>
#include <vector>

namespace demi::inline DEMI_ABI::detail {

/// A place in pinned host memory, and the event after which it holds the answer.
struct answer_slot {
    static constexpr std::size_t bytes = 512;

    void* memory = nullptr;
    cudaEvent_t ready = nullptr;
};

/// Places that are used again and again.
class answer_slots {
public:
    answer_slots() = default;
    answer_slots(const answer_slots&) = delete;
    answer_slots& operator=(const answer_slots&) = delete;
    ~answer_slots() {
        for (const auto& slot : slots_) static_cast<void>(cudaEventDestroy(slot.ready));
        for (void* page : pages_) static_cast<void>(cudaFreeHost(page));
    }

    answer_slot take() {
        if (free_.empty()) add_page();
        const answer_slot slot = free_.back();
        free_.pop_back();
        return slot;
    }

    /// The place may still be written by work under way: whoever takes it next writes it later on
    /// the same stream.
    void give_back(const answer_slot& slot) noexcept { free_.push_back(slot); }

private:
    void add_page() {
        constexpr std::size_t slots_per_page = 16;
        constexpr std::size_t bytes = slots_per_page * answer_slot::bytes;
        const outside_capture allowed;
        pages_.reserve(pages_.size() + 1);
        slots_.reserve(slots_.size() + slots_per_page);
        free_.reserve(slots_.size() + slots_per_page);
        void* page = nullptr;
        check_cuda(cudaHostAlloc(&page, bytes, cudaHostAllocDefault), "cudaHostAlloc", bytes);
        pages_.push_back(page);
        for (std::size_t i = 0; i < slots_per_page; ++i) {
            answer_slot slot;
            slot.memory = static_cast<std::byte*>(page) + i * answer_slot::bytes;
            check_cuda(cudaEventCreateWithFlags(&slot.ready, cudaEventDisableTiming),
                       "cudaEventCreateWithFlags");
            slots_.push_back(slot);
            free_.push_back(slot);
        }
    }

    std::vector<void*> pages_;
    std::vector<answer_slot> slots_;
    std::vector<answer_slot> free_;
};

}  // namespace demi::inline DEMI_ABI::detail
