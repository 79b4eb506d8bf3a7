// SPDX-License-Identifier: MIT
#include <demi/host/host_backend.hpp>

#include <cstddef>
#include <memory_resource>
#include <string>
#include <support/catch.hpp>
#include <unit/host/available_isas.hpp>
#include <vector>

namespace {

class counting_resource : public std::pmr::memory_resource {
public:
    int allocations = 0;
    std::size_t live_bytes = 0;

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        ++allocations;
        live_bytes += bytes;
        return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
        live_bytes -= bytes;
        std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
    }
    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }
};

template <class Settings>
std::string error_of(const Settings& settings) {
    try {
        demi::host_backend where(settings);
    } catch (const demi::invalid_argument& failure) {
        return failure.what();
    }
    return "";
}

using demi::sum_lanes;
using demi::widen;

struct sum {
    using value_type = double;
    template <class Real>
    struct partial {
        typename demi::real_traits<Real>::wide sum{};
    };
    template <class Real>
    void accumulate(partial<Real>& into, const Real& value) const {
        into.sum = into.sum + widen(value);
    }
    template <class Real>
    value_type finish(const partial<Real>& from) const {
        return sum_lanes(from.sum);
    }
    value_type combine(value_type a, value_type b) const { return a + b; }
};

}  // namespace

TEST_CASE("a backend without settings uses what the process has") {
    const demi::host_backend where;
    CHECK(where.isa() == demi::default_host_isa());
    CHECK(where.concurrency() == demi::default_executor().concurrency);
    CHECK(where.memory() == std::pmr::get_default_resource());
}

TEST_CASE("a backend does what its settings say") {
    counting_resource memory;
    for (const auto isa : demi_test::available_isas()) {
        const demi::host_backend where({.threads = 1, .memory = &memory, .isa = isa});
        CHECK(where.isa() == isa);
        CHECK(where.concurrency() == 1);
        CHECK(where.memory() == &memory);
    }
    const demi::host_backend three({.threads = 3, .executor = demi::make_thread_executor(5)});
    CHECK(three.concurrency() == 3);
}

TEST_CASE("settings that cannot be met are refused by name") {
    demi::host_settings settings;
    settings.executor = {.concurrency = 4, .run = nullptr};
    CHECK(error_of(settings).find("concurrency 4") != std::string::npos);
    settings.executor = {.concurrency = 0, .run = [](std::size_t, const auto&) {}};
    CHECK(error_of(settings).find("concurrency 0") != std::string::npos);
    settings = {};
    settings.isa = demi::host_isa::avx512;
    if (demi::detected_host_isa() < demi::host_isa::avx512) {
        CHECK(error_of(settings).find("avx512") != std::string::npos);
    } else {
        CHECK(error_of(settings).empty());
    }
}

TEST_CASE("buffers come zeroed from the backend's memory resource") {
    counting_resource memory;
    const demi::host_backend where({.memory = &memory});
    {
        const auto buffer = where.make_buffer<float>(100);
        CHECK(buffer.size() == 100);
        CHECK(buffer.data()[99] == 0.0f);
        CHECK(memory.allocations == 1);
        CHECK(memory.live_bytes == 400);
    }
    CHECK(memory.live_bytes == 0);
}

TEST_CASE("elements go to the backend's memory and back") {
    const demi::host_backend where;
    const std::vector<int> host = {1, 2, 3};
    auto buffer = where.make_buffer<int>(3);
    where.upload(host.data(), buffer.data(), 3);
    std::vector<int> back(3);
    where.download(buffer.data(), back.data(), 3);
    CHECK(back == host);
    where.upload(static_cast<const int*>(nullptr), static_cast<int*>(nullptr), 0);
}

TEST_CASE("a value that was read does not change afterwards") {
    const demi::host_backend where;
    auto buffer = where.make_buffer<float>(1);
    where.invoke([data = buffer.data()] { *data = 4.0f; });
    const auto before = where.read(buffer.data());
    where.invoke([data = buffer.data()] { *data = 5.0f; });
    CHECK(before.get() == 4.0f);
    CHECK(where.read(buffer.data()).get() == 5.0f);
}

TEST_CASE("passes run on the executor of the settings, shared by copies") {
    int runs = 0;
    demi::host_executor counting{2, [&](std::size_t count, const auto& task) {
                                     ++runs;
                                     for (std::size_t i = 0; i < count; ++i) task(i);
                                 }};
    const demi::host_backend where({.executor = counting});
    const demi::host_backend copy = where;
    std::vector<float> values(300000, 1.0f);
    const demi::tensor_list<float> list(values);
    where.transform([](auto& x) { x = x + 1.0f; }, inout(list));
    CHECK(runs == 1);
    auto result = copy.make_buffer<double>(1);
    copy.reduce(result.data(), sum{}, in(list));
    CHECK(runs == 2);
    CHECK(copy.read(result.data()).get() == 600000.0);
}

TEST_CASE("a product of matrices runs on the backend") {
    const demi::host_backend where({.threads = 1});
    const std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
    std::vector<float> c(4, -1.0f);
    where.gemm(1.0f, demi::matrix_view<const float>(a.data(), 2, 2),
               demi::matrix_view<const float>(b.data(), 2, 2), 0.0f,
               demi::matrix_view<float>(c.data(), 2, 2), demi::no_epilogue{});
    CHECK(c == std::vector<float>{19, 22, 43, 50});
}
