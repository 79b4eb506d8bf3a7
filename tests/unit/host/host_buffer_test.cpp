// SPDX-License-Identifier: MIT
#include <demi/host/host_buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <string>
#include <support/catch.hpp>
#include <type_traits>
#include <utility>

namespace {

class counting_resource : public std::pmr::memory_resource {
public:
    std::size_t live_bytes = 0;
    int allocations = 0;

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        void* memory = std::pmr::new_delete_resource()->allocate(bytes, alignment);
        auto* filled = static_cast<unsigned char*>(memory);
        for (std::size_t i = 0; i < bytes; ++i) filled[i] = 0xaa;
        live_bytes += bytes;
        ++allocations;
        return memory;
    }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
        live_bytes -= bytes;
        std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
    }
    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }
};

class engine_resource : public std::pmr::memory_resource {
    void* do_allocate(std::size_t bytes, std::size_t) override {
        throw demi::out_of_memory("engine pool is full", bytes + 1);
    }
    void do_deallocate(void*, std::size_t, std::size_t) override {}
    bool do_is_equal(const memory_resource&) const noexcept override { return false; }
};

}  // namespace

TEST_CASE("a buffer holds zero bytes on a boundary of 64 bytes and gives its memory back") {
    counting_resource memory;
    {
        const demi::host_buffer<std::uint32_t> buffer(1001, &memory);
        CHECK(buffer.size() == 1001);
        CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
        bool zero = true;
        for (std::size_t i = 0; i < buffer.size(); ++i) zero = zero && buffer.data()[i] == 0;
        CHECK(zero);
        CHECK(memory.live_bytes == 4004);
    }
    CHECK(memory.live_bytes == 0);
    CHECK(memory.allocations == 1);
}

TEST_CASE("an empty buffer asks for no memory") {
    counting_resource memory;
    const demi::host_buffer<double> buffer(0, &memory);
    CHECK(buffer.size() == 0);
    CHECK(buffer.data() == nullptr);
    CHECK(memory.allocations == 0);
    CHECK(demi::host_buffer<double>().size() == 0);
}

TEST_CASE("a buffer moves and does not copy") {
    static_assert(!std::is_copy_constructible_v<demi::host_buffer<int>>);
    counting_resource memory;
    demi::host_buffer<int> first(10, &memory);
    first.data()[3] = 7;
    demi::host_buffer<int> second(std::move(first));
    CHECK(first.size() == 0);
    CHECK(second.data()[3] == 7);
    demi::host_buffer<int> third(20, &memory);
    third = std::move(second);
    CHECK(third.size() == 10);
    CHECK(third.data()[3] == 7);
    CHECK(memory.live_bytes == 40);
}

TEST_CASE("a refused allocation becomes out_of_memory with the bytes that were asked for") {
    std::size_t requested = 0;
    std::string text;
    try {
        const demi::host_buffer<float> buffer(100, std::pmr::null_memory_resource());
    } catch (const demi::out_of_memory& failure) {
        requested = failure.requested_bytes();
        text = failure.what();
    }
    CHECK(requested == 400);
    CHECK(text.find("400") != std::string::npos);
}

TEST_CASE("out_of_memory of the engine's own resource comes through unchanged") {
    engine_resource memory;
    std::size_t requested = 0;
    std::string text;
    try {
        const demi::host_buffer<float> buffer(100, &memory);
    } catch (const demi::out_of_memory& failure) {
        requested = failure.requested_bytes();
        text = failure.what();
    }
    CHECK(requested == 401);
    CHECK(text == "engine pool is full");
}

TEST_CASE("a count whose bytes cannot be counted is out_of_memory") {
    CHECK_THROWS_AS(demi::host_buffer<double>(static_cast<std::size_t>(-1)), demi::out_of_memory);
    CHECK_THROWS_AS(demi::host_buffer<double>(static_cast<std::size_t>(-1) / 8 + 2),
                    demi::out_of_memory);
}
