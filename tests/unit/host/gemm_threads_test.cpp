// SPDX-License-Identifier: MIT
#include <demi/host/gemm.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory_resource>
#include <string>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <utility>
#include <vector>

namespace {

using namespace demi;

/// An executor that only pretends to have so many threads, and counts its tasks.
host_executor pretend_executor(std::size_t concurrency, std::size_t& tasks) {
    return {concurrency, [&tasks](std::size_t count, const std::function<void(std::size_t)>& task) {
                for (std::size_t i = count; i-- > 0;) task(i);
                tasks += count;
            }};
}

/// What memory is handed out and not yet returned.
class counting_resource : public std::pmr::memory_resource {
public:
    std::size_t requests = 0;
    std::size_t bytes_in_use = 0;

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        ++requests;
        bytes_in_use += bytes;
        return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
        bytes_in_use -= bytes;
        std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
    }
    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }
};

/// A functor that shows when a value is computed twice or elsewhere.
struct position_dependent {
    template <class Real>
    Real operator()(Real value, matrix_position at) const {
        return value * Real{1.25f} + Real{0.5f * static_cast<float>(at.row % 7)};
    }
};

}  // namespace

TEST_CASE("a product has the same bits for any number of threads") {
    matrix_rng rng(17);
    for (const auto order : {layout::row_major, layout::column_major}) {
        padded_matrix<float16> a(301, 290, layout::row_major, 1);
        padded_matrix<float16> b(290, 333, layout::column_major, 2);
        padded_matrix<bfloat16> c(301, 333, order, 3);
        a.fill(rng);
        b.fill(rng);
        c.fill(rng);
        for (const host_isa isa : available_isas()) {
            const auto product = [&](const host_executor* executor) {
                padded_matrix<bfloat16> result = c;
                detail::host_gemm({isa, executor, std::pmr::new_delete_resource()}, 0.7f,
                                  std::as_const(a).view(), std::as_const(b).view(), 0.3f,
                                  result.view(), position_dependent{});
                return result;
            };
            const auto alone = product(nullptr);
            CAPTURE(std::string(name(isa)));
            for (const std::size_t concurrency : {1u, 2u, 3u, 5u, 7u, 16u, 64u}) {
                std::size_t tasks = 0;
                const host_executor executor = pretend_executor(concurrency, tasks);
                CHECK(same_bits(product(&executor).memory(), alone.memory()));
                CHECK(tasks == (concurrency == 1 ? 0 : concurrency));
            }
            const host_executor threads = make_thread_executor(3);
            CHECK(same_bits(product(&threads).memory(), alone.memory()));
        }
    }
}

TEST_CASE("long sums of few elements are shared among threads with the same bits") {
    matrix_rng rng(18);
    padded_matrix<float> a(9, 40001, layout::row_major, 0), b(40001, 35, layout::row_major, 0);
    padded_matrix<float> c(9, 35, layout::row_major, 1);
    a.fill(rng);
    b.fill(rng);
    c.fill(rng);
    for (const host_isa isa : available_isas()) {
        const auto product = [&](const host_executor* executor) {
            padded_matrix<float> result = c;
            detail::host_gemm({isa, executor, std::pmr::new_delete_resource()}, 0.5f,
                              std::as_const(a).view(), std::as_const(b).view(), 0.25f,
                              result.view(), position_dependent{});
            return result;
        };
        const auto alone = product(nullptr);
        CHECK(alone.padding_is_untouched());
        CAPTURE(std::string(name(isa)));
        for (const std::size_t concurrency : {2u, 3u, 8u, 16u}) {
            std::size_t tasks = 0;
            const host_executor executor = pretend_executor(concurrency, tasks);
            CHECK(same_bits(product(&executor).memory(), alone.memory()));
            CHECK(tasks == concurrency);
        }
    }
}

TEST_CASE("bfloat16 pairs and few rows have the same bits for any number of threads") {
    matrix_rng rng(20);
    const std::size_t shapes[][3] = {{2, 900, 701}, {14, 300, 333}, {300, 40, 301}, {1, 1, 9001}};
    for (const auto& shape : shapes) {
        const std::size_t rows = shape[0], columns = shape[1], depth = shape[2];
        padded_matrix<bfloat16> a(rows, depth, layout::row_major, 1);
        padded_matrix<bfloat16> b(depth, columns, layout::row_major, 0);
        padded_matrix<float> wide_b(depth, columns, layout::row_major, 0);
        a.fill(rng);
        b.fill(rng);
        wide_b.fill(rng);
        for (const host_isa isa : available_isas()) {
            const auto product = [&](const host_executor* executor, const auto& right) {
                padded_matrix<float> c(rows, columns, layout::row_major, 2);
                detail::host_gemm({isa, executor, std::pmr::new_delete_resource()}, 1.0f,
                                  std::as_const(a).view(), right.view(), 0.0f, c.view(),
                                  no_epilogue{});
                return c;
            };
            const auto alone = product(nullptr, std::as_const(b));
            const auto wide_alone = product(nullptr, std::as_const(wide_b));
            CAPTURE(std::string(name(isa)), rows, columns, depth);
            for (const std::size_t concurrency : {2u, 5u, 16u}) {
                std::size_t tasks = 0;
                const host_executor executor = pretend_executor(concurrency, tasks);
                CHECK(same_bits(product(&executor, std::as_const(b)).memory(), alone.memory()));
                CHECK(same_bits(product(&executor, std::as_const(wide_b)).memory(),
                                wide_alone.memory()));
            }
        }
    }
}

// Without optimisation compilers do not fuse.
#if defined(__OPTIMIZE__)
TEST_CASE("fused multiply-add gives the same bits at any vector width") {
    if (detected_host_isa() < host_isa::avx512) return;
    matrix_rng rng(19);
    padded_matrix<float> a(37, 600, layout::row_major, 0), b(600, 90, layout::row_major, 0);
    a.fill(rng);
    b.fill(rng);
    const auto product = [&](host_isa isa) {
        padded_matrix<float> c(37, 90, layout::row_major, 0);
        detail::host_gemm({isa, nullptr, std::pmr::new_delete_resource()}, 1.0f,
                          std::as_const(a).view(), std::as_const(b).view(), 0.0f, c.view(),
                          no_epilogue{});
        return c;
    };
    CHECK(same_bits(product(host_isa::avx2).memory(), product(host_isa::avx512).memory()));
}
#endif

TEST_CASE("doubles are divided among threads by rows") {
    matrix_rng rng(43);
    padded_matrix<double> a(65, 80, layout::row_major, 0), b(80, 70, layout::column_major, 0);
    padded_matrix<double> alone(65, 70, layout::row_major, 0), shared = alone;
    a.fill(rng);
    b.fill(rng);
    std::size_t tasks = 0;
    const host_executor executor = pretend_executor(4, tasks);
    const auto product = [&](const host_executor* threads, padded_matrix<double>& c) {
        detail::host_gemm({host_isa::portable, threads, std::pmr::new_delete_resource()}, 1.0f,
                          std::as_const(a).view(), std::as_const(b).view(), 0.0f, c.view(),
                          no_epilogue{});
    };
    product(nullptr, alone);
    product(&executor, shared);
    CHECK(tasks == 65);
    CHECK(same_bits(alone.memory(), shared.memory()));
}

TEST_CASE("scratch memory comes from the resource, at once, and goes back") {
    counting_resource memory;
    std::size_t tasks = 0;
    const host_executor executor = pretend_executor(4, tasks);
    std::vector<float> a(200 * 200, 1.0f), c(200 * 200);
    const matrix_view<const float> view(a.data(), 200, 200);
    detail::host_gemm({detected_host_isa(), &executor, &memory}, 1.0f, view, view, 0.0f,
                      matrix_view<float>(c.data(), 200, 200), no_epilogue{});
    CHECK(tasks == 4);
    CHECK(memory.requests == 1);
    CHECK(memory.bytes_in_use == 0);
    CHECK(c == std::vector<float>(200 * 200, 200.0f));
}

TEST_CASE("a small product stays on its caller") {
    std::size_t tasks = 0;
    const host_executor executor = pretend_executor(4, tasks);
    std::vector<float> a(16 * 16, 1.0f), c(16 * 16);
    const matrix_view<const float> view(a.data(), 16, 16);
    detail::host_gemm({detected_host_isa(), &executor, std::pmr::new_delete_resource()}, 1.0f, view,
                      view, 0.0f, matrix_view<float>(c.data(), 16, 16), no_epilogue{});
    CHECK(tasks == 0);
    CHECK(c == std::vector<float>(16 * 16, 16.0f));
}
