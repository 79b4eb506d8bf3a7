// SPDX-License-Identifier: MIT
/// Arrays and values to measure with, and the sharing out of a loop over threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <random>
#include <span>

namespace bench {

/// Elements at a multiple of 64 bytes, all pages touched. Arrays begin at different places of a
/// page: equal ones make a store look like the next load's, which would punish some loops only.
template <class T>
class array {
public:
    explicit array(std::size_t count)
        : memory_(static_cast<std::byte*>(::operator new(bytes(count), alignment))),
          data_(reinterpret_cast<T*>(memory_ + next_offset())),
          count_(count) {
        for (std::size_t i = 0; i < count; ++i) data_[i] = T{};
    }
    array(const array&) = delete;
    array& operator=(const array&) = delete;
    ~array() { ::operator delete(memory_, alignment); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return count_; }
    std::span<T> span() { return {data_, count_}; }
    std::span<const T> span() const { return {data_, count_}; }
    T& operator[](std::size_t index) { return data_[index]; }
    const T& operator[](std::size_t index) const { return data_[index]; }

private:
    static constexpr std::align_val_t alignment{4096};
    static std::size_t bytes(std::size_t count) { return count * sizeof(T) + 4096; }
    static std::size_t next_offset() {
        static std::size_t arrays = 0;
        return arrays++ % 6 * 640;
    }

    std::byte* memory_;
    T* data_;
    std::size_t count_;
};

/// Uniform in [-1, 1), the same in every run.
inline void fill_uniform(std::span<float> values, std::uint32_t seed) {
    std::mt19937 random(seed);
    for (float& value : values) {
        value = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31f;
    }
}

/// Runs `loop(begin, end)` over `count` elements in as many parts as there are threads.
void share_out(std::size_t threads, std::size_t count,
               const std::function<void(std::size_t, std::size_t)>& loop);

}  // namespace bench
