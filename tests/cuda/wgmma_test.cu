// SPDX-License-Identifier: MIT
// Compiled for sm_90a, and for devices of compute capability 9.0 only: a program of its own.
#include <demi/cuda/cuda_backend.cuh>
#include <demi/kernels/gemm.hpp>
#include <demi/kernels/gemm_batched.hpp>

#include <cuda/device_matrix.hpp>
#include <cuda/fused_product.hpp>
#include <cuda/product_cases.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <type_traits>
#include <utility>

namespace {

using demi::bfloat16;
using demi::float16;
using demi::float8_e4m3;
using demi::float8_e5m2;
using demi::layout;
using demi::matrix_view;

/// What the front door does, but with `launch(context, product, access)` instead of its choice.
template <class Epilogue = demi::no_epilogue>
struct way {
    demi::gemm_options options{};
    Epilogue epilogue{};

    template <class A, class B, class C, class Launch>
    bool take(const demi::cuda_backend& where, const matrix_view<const A>& a,
              const matrix_view<const B>& b, const matrix_view<C>& c, const Launch& launch,
              bool is_transposed = false) const {
        if (c.order() == layout::column_major) {
            return take(where, transposed(b), transposed(a), transposed(c), launch, true);
        }
        auto product = demi::detail::make_product(options.alpha, a, b, options.beta, c, epilogue,
                                                  is_transposed);
        demi::detail::product_lines lines;
        lines.add(a, b, c);
        product.has_wide_lines = lines.c.bytes() >= (sizeof(C) == 1 ? 8 : 16);
        return launch(where.context(), product,
                      demi::detail::product_access{lines.a.bytes(), lines.b.bytes()});
    }
};

constexpr auto by_choice = [](auto& context, const auto& product, const auto& access) {
    return demi::detail::launch_wgmma(context, product, access);
};

template <class Tile>
constexpr auto by_tile = [](auto& context, const auto& product, const auto&) {
    demi::detail::launch_wgmma_tile<Tile>(context, product);
    return true;
};

/// Elements that are further from the exact product than they may be, or signs that the product was
/// not taken or wrote beside its result. `C` at any place.
template <class A, class B, class C, class Launch>
std::size_t wrong_elements(const demi::cuda_backend& where, const product_case& now,
                           matrix_rng& rng, const Launch& launch) {
    device_matrix<A> a(where, now.m, now.k, bit_layout(now.layouts, 0), 16);
    device_matrix<B> b(where, now.k, now.n, bit_layout(now.layouts, 1), 16);
    device_matrix<C> c(where, now.m, now.n, bit_layout(now.layouts, 2),
                       now.m % 2 == 0 ? 16 : sizeof(C));
    a.fill(rng);
    b.fill(rng);
    if (now.options.beta != 0) c.fill(rng);
    const way<> plain{now.options};
    if (!plain.take(where, a.constant(), b.constant(), c.view(), launch)) return 2'000'000;
    const padded_matrix<C> found = c.result();
    return count_wrong(now.options.alpha, a.host(), b.host(), now.options.beta, c.host(),
                       found.view()) +
           (found.padding_is_untouched() ? 0 : 1'000'000);
}

template <class A, class B, class C>
void check_odd_sizes(std::size_t largest, std::size_t step) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    for_odd_sizes(largest, step, 16, [&](const product_case& now, matrix_rng& rng) {
        return wrong_elements<A, B, C>(where, now, rng, by_choice);
    });
}

/// Threads of a block of the first kernel that `work` puts into a stream.
template <class Work>
unsigned threads_of(const demi::cuda_stream& stream, const Work& work) {
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    work();
    REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    std::size_t count = 1;
    cudaGraphNode_t node = nullptr;
    REQUIRE(cudaGraphGetRootNodes(graph, &node, &count) == cudaSuccess);
    cudaKernelNodeParams parameters{};
    REQUIRE(cudaGraphKernelNodeGetParams(node, &parameters) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    return parameters.blockDim.x;
}

}  // namespace

TEST_CASE("products of 16-bit matrices by wgmma are within the error of a float sum") {
    SECTION("float16") { check_odd_sizes<float16, float16, float16>(200, 4); }
    SECTION("bfloat16") { check_odd_sizes<bfloat16, bfloat16, bfloat16>(200, 20); }
    SECTION("bfloat16 with a float result") { check_odd_sizes<bfloat16, bfloat16, float>(200, 10); }
}

TEST_CASE("every wgmma tile computes every pair of layouts") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    matrix_rng rng(5);
    for (std::size_t layouts = 0; layouts < 4; ++layouts) {
        for (const auto& [m, n, k] : {std::array<std::size_t, 3>{128, 256, 64},
                                      {130, 264, 72},
                                      {40, 24, 8},
                                      {70, 130, 600}}) {
            CAPTURE(layouts, m, n, k);
            const product_case now{m, n, k, layouts};
            const auto tile = [&](auto shape) {
                return wrong_elements<float16, float16, float16>(where, now, rng,
                                                                 by_tile<decltype(shape)>);
            };
            CHECK(tile(demi::wgmma_tile<128, 256, 4>{}) == 0);
            CHECK(tile(demi::wgmma_tile<128, 128, 6>{}) == 0);
            CHECK(tile(demi::wgmma_tile<64, 128, 8>{}) == 0);
        }
    }
}

TEMPLATE_TEST_CASE("products of 8-bit matrices whose sums fit are exact", "",
                   (std::pair<float8_e4m3, float8_e4m3>), (std::pair<float8_e4m3, float8_e5m2>),
                   (std::pair<float8_e5m2, float8_e4m3>), (std::pair<float8_e5m2, float8_e5m2>)) {
    using left = typename TestType::first_type;
    using right = typename TestType::second_type;
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    for (const auto& [m, n, k] :
         {std::array<std::size_t, 3>{130, 150, 300}, {64, 128, 1024}, {5, 3, 17}}) {
        for (const layout order : {layout::row_major, layout::column_major}) {
            device_matrix<left> a(where, m, k, layout::row_major, 16);
            device_matrix<right> b(where, k, n, layout::column_major, 16);
            device_matrix<float> c(where, m, n, order, 16);
            a.set_each(small_integer);
            b.set_each(small_integer);
            REQUIRE(way<>{}.take(where, a.constant(), b.constant(), c.view(), by_choice));
            const auto found = c.result();
            std::size_t wrong = 0;
            for (std::size_t r = 0; r < m; ++r) {
                for (std::size_t s = 0; s < n; ++s) {
                    if (!(found.view()(r, s) == sum_of_small_integers(r, s, k))) ++wrong;
                }
            }
            CAPTURE(m, n, k);
            CHECK(wrong == 0);
            CHECK(found.padding_is_untouched());
        }
    }
}

TEST_CASE("epilogues of products by wgmma see each value once, at its place") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    check_fused_products<float16>(
        where, 75, 168, 72,
        [&](const auto& x, const auto& y, const auto& result, const auto& options,
            const auto& epilogue) {
            const way<std::remove_cvref_t<decltype(epilogue)>> fused{options, epilogue};
            REQUIRE(fused.take(where, x, y, result, by_choice));
        });
}

TEMPLATE_TEST_CASE("NaN and infinity reach their row or column by wgmma, and nothing else", "",
                   (std::pair<float16, float16>), (std::pair<bfloat16, bfloat16>),
                   (std::pair<float8_e5m2, float>)) {
    using operand = typename TestType::first_type;
    using result = typename TestType::second_type;
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    const std::size_t m = 71, n = 67, k = 45;
    device_matrix<operand> a(where, m, k, layout::row_major, 16);
    device_matrix<operand> b(where, k, n, layout::column_major, 16);
    device_matrix<result> c(where, m, n, layout::row_major, 16);
    device_matrix<result> in_values(where, m, n, layout::row_major);
    a.set_each([](std::size_t, std::size_t) { return 0.25f; }).set(66, 44, std::nanf(""));
    b.set_each([](std::size_t, std::size_t) { return 0.5f; }).set(44, 3, HUGE_VALF);
    REQUIRE(way<>{}.take(where, a.constant(), b.constant(), c.view(), by_choice));
    REQUIRE(way<>{}.take(where, a.constant(), b.constant(), in_values.view(), by_choice));
    const auto found = c.result();
    const auto found_in_values = in_values.result();
    std::size_t wrong = 0;
    for (std::size_t r = 0; r < m; ++r) {
        for (std::size_t s = 0; s < n; ++s) {
            const auto value = found.view()(r, s);
            const bool right = r == 66  ? demi::is_nan(value)
                               : s == 3 ? demi::is_infinite(value)
                                        : demi::is_finite(value);
            if (!right || !same_bits(value, found_in_values.view()(r, s))) ++wrong;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("a long inner dimension is divided by wgmma, and the bits are the same each time") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    matrix_rng rng(10);
    for (const std::size_t k : {4096, 3001}) {
        CAPTURE(k);
        device_matrix<float16> a(where, 70, k, layout::row_major, 16);
        device_matrix<float16> b(where, k, 40, layout::row_major, 16);
        device_matrix<float16> first(where, 70, 40, layout::row_major, 16);
        device_matrix<float16> second(where, 70, 40, layout::column_major, 16);
        a.fill(rng);
        b.fill(rng);
        const way<> plain{};
        REQUIRE(plain.take(where, a.constant(), b.constant(), first.view(), by_choice));
        REQUIRE(plain.take(where, a.constant(), b.constant(), second.view(), by_choice));
        const auto found = first.result();
        const auto turned = second.result();
        CHECK(count_wrong(1.0f, a.host(), b.host(), 0.0f, first.host(), found.view()) == 0);
        CHECK(count_wrong(1.0f, a.host(), b.host(), 0.0f, second.host(), turned.view()) == 0);
        REQUIRE(plain.take(where, a.constant(), b.constant(), first.view(), by_choice));
        CHECK(same_bits(first.result().memory(), found.memory()));
    }
}

TEST_CASE("large tiles where the second-level cache is the limit, small ones for few rows") {
    using demi::detail::tile_size;
    const std::array<tile_size, 3> tiles{tile_size{128, 256, 64, 0, true},
                                         tile_size{128, 128, 64, 0, true},
                                         tile_size{64, 128, 64, 0, true}};
    const demi::detail::gemm_limits device{132, 200'000, std::size_t{64} << 20};
    const auto plan = [&](std::size_t m, std::size_t n, std::size_t k) {
        return demi::detail::plan_gemm({m, n, k, 1}, tiles, device);
    };
    CHECK(plan(8192, 8192, 8192).tile == 0);
    CHECK(plan(4096, 4096, 4096).tile == 0);
    CHECK(plan(1024, 1024, 1024).tile == 1);
    CHECK(plan(64, 8192, 8192).tile == 2);
    CHECK(plan(1024, 1024, 1024).parts == 1);
    CHECK(plan(128, 8192, 8192).tile == 0);
    CHECK(plan(128, 8192, 8192).parts == 4);
}

TEST_CASE("the front door goes to wgmma where the copy engine can read the operands") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    matrix_rng rng(11);
    constexpr unsigned wgmma_threads = demi::wgmma_tile<64, 128, 8>::threads;
    const auto threads = [&](auto& a, auto& b, auto& c) {
        return threads_of(stream, [&] { demi::gemm(where, a.constant(), b.constant(), c.view()); });
    };

    SECTION("of 16 bits, from 16 bytes on") {
        for (const std::size_t alignment : {16, 8, 2}) {
            device_matrix<float16> a(where, 70, 40, layout::row_major, 16);
            device_matrix<float16> b(where, 40, 50, layout::row_major, alignment);
            device_matrix<float16> c(where, 70, 50, layout::row_major);
            a.fill(rng);
            b.fill(rng);
            CHECK((threads(a, b, c) == wgmma_threads) == (alignment == 16));
            demi::gemm(where, a.constant(), b.constant(), c.view());
            const auto found = c.result();
            CHECK(count_wrong(1.0f, a.host(), b.host(), 0.0f, c.host(), found.view()) == 0);
        }
    }

    SECTION("of 8 bits, along the depth") {
        for (const layout order : {layout::row_major, layout::column_major}) {
            device_matrix<float8_e4m3> a(where, 70, 40, layout::row_major, 16);
            device_matrix<float8_e4m3> b(where, 40, 50, order, 16);
            device_matrix<float> c(where, 70, 50, layout::row_major);
            a.set_each(small_integer);
            b.set_each(small_integer);
            CHECK((threads(a, b, c) == wgmma_threads) == (order == layout::column_major));
            demi::gemm(where, a.constant(), b.constant(), c.view());
            CHECK(c.result().view()(69, 49) == sum_of_small_integers(69, 49, 40));
        }
    }

    SECTION("not for an empty inner dimension") {
        device_matrix<float16> a(where, 70, 0, layout::row_major, 16);
        device_matrix<float16> b(where, 0, 50, layout::row_major, 16);
        device_matrix<float16> c(where, 70, 50, layout::row_major);
        CHECK(threads(a, b, c) != wgmma_threads);
    }

    SECTION("for batches at equal distances, more of them than a device runs at a time") {
        const std::size_t count = 150;
        device_matrix<float16> a(where, count * 16, 24, layout::row_major, 16);
        device_matrix<float16> b(where, 24, 40, layout::row_major, 16);
        device_matrix<float16> batched(where, count * 16, 40, layout::row_major, 16);
        device_matrix<float16> single(where, count * 16, 40, layout::row_major, 16);
        a.fill(rng);
        b.fill(rng);
        const auto parts = [&](matrix_view<float16> whole) {
            const matrix_view<float16> part(whole.data(), 16, whole.columns(),
                                            whole.leading_dimension(), layout::row_major);
            return demi::strided_matrices<float16>(part, 16 * whole.leading_dimension(), count);
        };
        const auto multiply = [&] {
            demi::gemm_batched(where, parts(a.view()),
                               demi::strided_matrices<float16>(b.view(), 0, count),
                               parts(batched.view()));
        };
        CHECK(threads_of(stream, multiply) == wgmma_threads);
        multiply();
        demi::gemm(where, a.constant(), b.constant(), single.view());
        CHECK(same_bits(batched.result().memory(), single.result().memory()));
    }
}
