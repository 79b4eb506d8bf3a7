// SPDX-License-Identifier: MIT
#include <demi/cuda/cuda_backend.cuh>
#include <demi/kernels/gemm.hpp>
#include <demi/kernels/gemm_batched.hpp>
#include <demi/kernels/watching_epilogue.hpp>

#include <cuda/device_matrix.hpp>
#include <cuda/fused_product.hpp>
#include <cuda/product_cases.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <vector>

namespace {

using demi::layout;
using demi::matrix_view;

template <class T>
std::vector<T> bits_of_result(const device_matrix<T>& matrix) {
    return matrix.result().memory();
}

/// Elements that are further from the exact product than they may be, or touched padding.
template <class A, class B, class C, class Multiply>
std::size_t wrong_elements(const demi::cuda_backend& where, const product_case& now,
                           matrix_rng& rng, const Multiply& multiply) {
    const auto aligned = [&](std::size_t size) { return std::max(now.alignment, size); };
    device_matrix<A> a(where, now.m, now.k, bit_layout(now.layouts, 0), aligned(sizeof(A)));
    device_matrix<B> b(where, now.k, now.n, bit_layout(now.layouts, 1), aligned(sizeof(B)));
    device_matrix<C> c(where, now.m, now.n, bit_layout(now.layouts, 2), aligned(sizeof(C)));
    a.fill(rng);
    b.fill(rng);
    if (now.options.beta != 0) c.fill(rng);
    multiply(a.constant(), b.constant(), c.view());
    const padded_matrix<C> found = c.result();
    // Tensor cores that multiply 8-bit values keep some 14 bits of the sums of a slice.
    const bool has_float8 = where.context().device().compute_capability >= 89;
    const double inexact = has_float8 && sizeof(A) == 1 && sizeof(B) == 1 ? 0x1p-11 : 0;
    return count_wrong(now.options.alpha, a.host(), b.host(), now.options.beta, c.host(),
                       found.view(), inexact) +
           (found.padding_is_untouched() ? 0 : 1'000'000);
}

template <class A, class B, class C>
std::size_t wrong_elements(const demi::cuda_backend& where, const product_case& now,
                           matrix_rng& rng) {
    return wrong_elements<A, B, C>(
        where, now, rng, [&](auto a, auto b, auto c) { demi::gemm(where, a, b, c, now.options); });
}

template <class A, class B, class C>
void check_odd_sizes(std::size_t largest, std::size_t step) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    for_odd_sizes(largest, step, 2, [&](const product_case& now, matrix_rng& rng) {
        return wrong_elements<A, B, C>(where, now, rng);
    });
}

/// A user's function that is no template and writes memory.
struct count_calls {
    unsigned* calls;
    std::size_t columns;

    __device__ __host__ float operator()(float value, demi::matrix_position at) const {
        unsigned* const call = calls + at.row * columns + at.column;
#if defined(__CUDA_ARCH__)
        atomicAdd(call, 1u);
#else
        ++*call;
#endif
        return value;
    }
};

/// Gives values with any bits, every other one a NaN or an infinity.
struct any_value {
    __device__ __host__ float operator()(float, demi::matrix_position at) const {
        const auto mixed =
            static_cast<std::uint32_t>(at.row * 0x9e3779b1u + at.column * 0x85ebca77u);
        const std::uint32_t bits = mixed * (mixed >> 13 | 1);
        return demi::from_bits<float>(at.column % 2 == 0 ? bits : bits | 0x7f800000u);
    }
};

/// Epilogues that watch before and after an activation, and what they have found.
class watches {
public:
    explicit watches(const demi::cuda_backend& where, const float* offsets)
        : where_(where),
          offsets_(offsets),
          amax_(where.make_buffer<float>(2)),
          flag_(where.make_buffer<std::uint32_t>(1)) {
        where.upload(std::array<float, 2>{}.data(), amax_.data(), 2);
        where.upload(std::array<std::uint32_t, 1>{}.data(), flag_.data(), 1);
    }

    auto epilogue() {
        return demi::then(demi::bias<float>(offsets_), demi::raise_amax(amax_.data()), demi::gelu{},
                          demi::raise_amax(amax_.data() + 1),
                          demi::flag_non_finite<demi::float16>(flag_.data()));
    }
    float before() const { return where_.read(amax_.data()).get(); }
    float after() const { return where_.read(amax_.data() + 1).get(); }
    bool flagged() const { return where_.read(flag_.data()).get() == 1; }

private:
    demi::cuda_backend where_;
    const float* offsets_;
    demi::cuda_buffer<float> amax_;
    demi::cuda_buffer<std::uint32_t> flag_;
};

/// What the epilogues have to find, from the values themselves.
struct watched_values {
    float amax = 0;
    bool overflows = false;

    template <class T>
    void add(T value) {
        const float narrow = demi::convert<float>(value);
        if (demi::is_finite(narrow)) amax = std::fmax(amax, std::fabs(narrow));
        if (!demi::is_finite(demi::convert<demi::float16>(value))) overflows = true;
    }
};

/// Sums below 1, but for what a test sets.
template <class T, class C>
struct watched_product {
    static constexpr float offset = -64;

    device_matrix<T> a, b;
    device_matrix<C> plain, c;
    device_matrix<float> offsets;

    watched_product(const demi::cuda_backend& where, const product_case& now)
        : a(where, now.m, now.k, bit_layout(now.layouts, 0), now.alignment),
          b(where, now.k, now.n, bit_layout(now.layouts, 1), now.alignment),
          plain(where, now.m, now.n, bit_layout(now.layouts, 2),
                std::max(now.alignment, sizeof(C))),
          c(where, now.m, now.n, bit_layout(now.layouts, 2), std::max(now.alignment, sizeof(C))),
          offsets(where, 1, now.n, layout::row_major) {
        offsets.set_each([](std::size_t, std::size_t) { return offset; });
        // So a value that is none, and of which only the offset is left, were the largest.
        a.set_each(
            [](std::size_t r, std::size_t i) { return i == 0 ? 8 : small_integer(r, i) / 64; });
        b.set_each(
            [](std::size_t i, std::size_t s) { return i == 0 ? 8 : small_integer(i, s) / 64; });
    }

    /// Whether both amax and the flag are what the values say.
    bool is_watched(const demi::cuda_backend& where) {
        watches watch(where, offsets.view().data());
        demi::gemm(where, a.constant(), b.constant(), plain.view());
        demi::gemm(where, a.constant(), b.constant(), c.view(), {}, watch.epilogue());
        const auto sums = plain.result();
        const auto results = c.result();
        watched_values before, after;
        for (std::size_t r = 0; r < results.view().rows(); ++r) {
            for (std::size_t s = 0; s < results.view().columns(); ++s) {
                before.add(sums.view()(r, s) + static_cast<C>(offset));
                after.add(results.view()(r, s));
            }
        }
        overflows = after.overflows;
        return watch.before() == before.amax && watch.after() == after.amax &&
               watch.flagged() == after.overflows && results.padding_is_untouched();
    }

    bool overflows = false;
};

}  // namespace

TEST_CASE("products of 16-bit matrices are within the error of a float sum") {
    SECTION("float16") { check_odd_sizes<demi::float16, demi::float16, demi::float16>(200, 2); }
    SECTION("bfloat16 with a float result") {
        check_odd_sizes<demi::bfloat16, demi::bfloat16, float>(200, 4);
    }
}

TEST_CASE("products of other and of mixed formats are within the error of their sums") {
    SECTION("float") { check_odd_sizes<float, float, float>(200, 8); }
    SECTION("float16 and float") { check_odd_sizes<demi::float16, float, demi::bfloat16>(130, 9); }
    SECTION("two 16-bit formats") { check_odd_sizes<demi::float16, demi::bfloat16, float>(100, 9); }
    SECTION("two 8-bit formats") {
        check_odd_sizes<demi::float8_e4m3, demi::float8_e5m2, demi::float16>(100, 9);
    }
}

TEST_CASE("every tile computes every pair of layouts") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    if (where.context().device().compute_capability < 80) return;
    matrix_rng rng(5);
    using half = demi::float16;
    const auto with = [&](const auto& launch) {
        return [&](auto a, auto b, auto c) {
            auto product = demi::detail::make_product(1, a, b, 0, c, demi::no_epilogue{}, false);
            product.has_wide_lines = true;
            launch(product);
        };
    };
    for (std::size_t layouts = 0; layouts < 4; ++layouts) {
        for (const auto& [m, n, k] : {std::array<std::size_t, 3>{256, 128, 128},
                                      {264, 136, 40},
                                      {40, 24, 8},
                                      {130, 120, 33}}) {
            CAPTURE(layouts, m, n, k);
            const product_case now{m, n, k, layouts, 16};
            const auto tile = [&](auto shape) {
                return wrong_elements<half, half, half>(
                    where, now, rng, with([&](auto product) {
                        demi::detail::launch_mma<decltype(shape), true>(where.context(), product,
                                                                        {16, 16});
                    }));
            };
            CHECK(tile(demi::mma_tile<256, 128, 32, 64, 64, 3>{}) == 0);
            CHECK(tile(demi::mma_tile<128, 128, 32, 64, 64, 4>{}) == 0);
            using narrow = demi::float8_e4m3;
            const auto with_8_bits = wrong_elements<half, half, narrow>(
                where, now, rng, with([&](auto product) {
                    demi::detail::launch_mma<demi::mma_tile<64, 64, 32, 32, 32, 4>, true>(
                        where.context(), product, {16, 16});
                }));
            CHECK(with_8_bits == 0);
            const auto large = wrong_elements<float, float, float>(
                where, now, rng, with([&](auto product) {
                    using pass = demi::detail::simt_pass<2, decltype(product)>;
                    demi::detail::launch_tiles(where.context(), pass{product}, pass::size,
                                               pass::size, 0);
                }));
            CHECK(large == 0);
        }
    }
}

TEST_CASE("lines may be more than 2^31 elements from the first") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    using half = demi::float16;
    const std::size_t leading = (std::size_t{1} << 30) + 8;
    const std::size_t bytes = (2 * leading + 64) * sizeof(half);
    void* memory_a = nullptr;
    void* memory_c = nullptr;
    if (cudaMalloc(&memory_a, bytes) == cudaSuccess &&
        cudaMalloc(&memory_c, bytes) == cudaSuccess) {
        const matrix_view<half> a(static_cast<half*>(memory_a), 3, 40, leading, layout::row_major);
        const matrix_view<half> c(static_cast<half*>(memory_c), 3, 16, leading, layout::row_major);
        device_matrix<half> b(where, 40, 16, layout::row_major, 16);
        b.set_each([](std::size_t r, std::size_t s) { return r == s ? 1.0f : 0.0f; });
        std::vector<half> line(40);
        for (std::size_t r = 0; r < 3; ++r) {
            for (std::size_t k = 0; k < 40; ++k) {
                line[k] = demi::convert<half>(small_integer(r, k));
            }
            where.upload(line.data(), &a(r, 0), line.size());
        }
        demi::gemm(where, a, b.constant(), c);
        for (std::size_t r = 0; r < 3; ++r) {
            where.download(&c(r, 0), line.data(), 16);
            CAPTURE(r);
            CHECK(demi::convert<float>(line[1]) == small_integer(r, 1));
            CHECK(demi::convert<float>(line[15]) == small_integer(r, 15));
        }
    }
    static_cast<void>(cudaGetLastError());
    CHECK(cudaFree(memory_a) == cudaSuccess);
    CHECK(cudaFree(memory_c) == cudaSuccess);
}

TEST_CASE("types of one format are the same to a product") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    matrix_rng rng(6);
    const product_case now{33, 50, 40, 5, 4};
    CHECK(wrong_elements<__half, demi::float16, __half>(where, now, rng) == 0);
    CHECK(wrong_elements<__nv_bfloat16, demi::bfloat16, float>(where, now, rng) == 0);
}

TEMPLATE_TEST_CASE("products that fit into the sums are exact", "", demi::float16, float, double) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    // Sums of products with this fit into double only.
    const float more = std::is_same_v<TestType, double> ? 0x1p-20f : 0.0f;
    const auto value_a = [=](std::size_t r, std::size_t s) { return small_integer(r, s) + more; };
    const auto value_b = [=](std::size_t r, std::size_t s) { return small_integer(s, r) - more; };
    for (std::size_t layouts = 0; layouts < 8; ++layouts) {
        device_matrix<TestType> a(where, 70, 90, bit_layout(layouts, 0));
        device_matrix<TestType> b(where, 90, 50, bit_layout(layouts, 1));
        device_matrix<TestType> c(where, 70, 50, bit_layout(layouts, 2));
        a.set_each(value_a);
        b.set_each(value_b);
        demi::gemm(where, a.constant(), b.constant(), c.view());
        const auto found = c.result();
        std::size_t wrong = 0;
        for (std::size_t r = 0; r < 70; ++r) {
            for (std::size_t s = 0; s < 50; ++s) {
                double exact = 0;
                for (std::size_t i = 0; i < 90; ++i) {
                    exact += double{value_a(r, i)} * double{value_b(i, s)};
                }
                if (!(demi::convert<double>(found.view()(r, s)) == exact)) ++wrong;
            }
        }
        CAPTURE(layouts);
        CHECK(wrong == 0);
    }
}

TEMPLATE_TEST_CASE("NaN and infinity reach their row or column, and nothing else", "",
                   demi::float16, float) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    matrix_rng rng(8);
    const std::size_t m = 71, n = 67, k = 45;
    device_matrix<TestType> a(where, m, k, layout::row_major);
    device_matrix<TestType> b(where, k, n, layout::row_major);
    device_matrix<TestType> c(where, m, n, layout::row_major);
    a.fill(rng).set(66, 44, std::nanf(""));
    b.set_each([](std::size_t, std::size_t) { return 0.5f; }).set(44, 3, HUGE_VALF);
    demi::gemm(where, a.constant(), b.constant(), c.view());
    const auto found = c.result();
    std::size_t wrong = 0;
    for (std::size_t r = 0; r < m; ++r) {
        for (std::size_t s = 0; s < n; ++s) {
            const auto value = found.view()(r, s);
            const bool right = r == 66  ? demi::is_nan(value)
                               : s == 3 ? demi::is_infinite(value)
                                        : demi::is_finite(value);
            if (!right) ++wrong;
        }
    }
    CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("an empty inner dimension leaves beta times the result", "", demi::float16,
                   float) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    device_matrix<TestType> a(where, 70, 0, layout::row_major);
    device_matrix<TestType> b(where, 0, 9, layout::row_major);
    device_matrix<TestType> c(where, 70, 9, layout::column_major);
    const auto all_equal = [&](float expected) {
        const auto found = c.result();
        std::size_t wrong = 0;
        for (std::size_t r = 0; r < 70; ++r) {
            for (std::size_t s = 0; s < 9; ++s) {
                if (!(demi::convert<float>(found.view()(r, s)) == expected)) ++wrong;
            }
        }
        return wrong == 0;
    };
    demi::gemm(where, a.constant(), b.constant(), c.view());
    CHECK(all_equal(0));
    c.set_each([](std::size_t, std::size_t) { return 3.0f; });
    demi::gemm(where, a.constant(), b.constant(), c.view(), {1, 0.5f});
    CHECK(all_equal(1.5f));
}

TEMPLATE_TEST_CASE("epilogues see each value once, at its place", "", demi::float16, float) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    check_fused_products<TestType>(
        where, 75, 72, 24,
        [&](const auto& x, const auto& y, const auto& result, const auto& options,
            const auto& epilogue) { demi::gemm(where, x, y, result, options, epilogue); });
}

TEMPLATE_TEST_CASE("epilogues watch every value of the result, and nothing else", "",
                   demi::bfloat16, float, double) {
    using result = std::conditional_t<std::is_same_v<TestType, double>, double, float>;
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    // What is multiplied in double is not divided.
    const std::size_t deep = std::is_same_v<TestType, double> ? 33 : 1024;
    for (const auto& [m, n, k, alignment] : {std::array<std::size_t, 4>{64, 64, 16, 16},
                                             {75, 70, 24, sizeof(TestType)},
                                             {1, 131, 41, 16},
                                             {131, 1, 40, 16},
                                             {5, 260, deep, 16}}) {
        const std::size_t layouts = m % 8;
        CAPTURE(m, n, k, layouts, alignment);
        watched_product<TestType, result> of(where, {m, n, k, layouts, alignment});
        CHECK(of.is_watched(where));
        CHECK_FALSE(of.overflows);

        of.a.set(m - 1, k - 1, 300);
        of.b.set(k - 1, n - 1, 300);
        CHECK(of.is_watched(where));
        CHECK(of.overflows);

        of.b.set(k - 1, n - 1, 0);
        of.a.set(0, k / 2, m % 2 == 0 ? HUGE_VALF : std::nanf(""));
        CHECK(of.is_watched(where));
        CHECK(of.overflows);
    }
}

TEST_CASE("epilogues watch all products of a batch") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    watched_product<demi::bfloat16, float> of(where, {5 * 64, 24, 32, 0, 16});
    const auto parts = [](auto whole) {
        return demi::strided_matrices(decltype(whole)(whole.data(), 64, whole.columns(),
                                                      whole.leading_dimension(), layout::row_major),
                                      64 * whole.leading_dimension(), 5);
    };
    for (const bool overflows : {false, true}) {
        if (overflows) of.a.set(3 * 64 + 7, 0, 16384);
        watches watch(where, of.offsets.view().data());
        demi::gemm_batched(where, parts(of.a.constant()),
                           demi::strided_matrices(of.b.constant(), 0, 5), parts(of.c.view()), {},
                           watch.epilogue());
        const auto results = of.c.result();
        watched_values expected;
        for (std::size_t r = 0; r < 5 * 64; ++r) {
            for (std::size_t s = 0; s < 24; ++s) expected.add(results.view()(r, s));
        }
        CHECK(expected.overflows == overflows);
        CHECK(watch.after() == expected.amax);
        CHECK(watch.flagged() == overflows);
    }
}

TEMPLATE_TEST_CASE("what an epilogue gives is converted as on the host", "", demi::float16,
                   demi::bfloat16, float) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    device_matrix<float> a(where, 70, 0, layout::row_major);
    device_matrix<float> b(where, 0, 300, layout::row_major);
    for (const std::size_t alignment : {std::size_t{16}, sizeof(TestType)}) {
        device_matrix<TestType> c(where, 70, 300, layout::row_major, alignment);
        demi::gemm(where, a.constant(), b.constant(), c.view(), {}, any_value{});
        const auto found = c.result();
        std::size_t wrong = 0;
        for (std::size_t r = 0; r < 70; ++r) {
            for (std::size_t s = 0; s < 300; ++s) {
                const auto expected = demi::convert<TestType>(any_value{}(0, {r, s}));
                if (!same_bits(found.view()(r, s), expected)) ++wrong;
            }
        }
        CAPTURE(alignment);
        CHECK(wrong == 0);
    }
}

TEST_CASE("an epilogue of a user's is called once for each element, divided depth or not") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    for (const auto& [m, n, k] :
         {std::array<std::size_t, 3>{65, 70, 16}, {65, 70, 2048}, {70, 65, 0}}) {
        device_matrix<float> a(where, m, k, layout::row_major);
        device_matrix<float> b(where, k, n, layout::row_major);
        device_matrix<float> c(where, m, n, layout::column_major);
        auto calls = where.make_buffer<unsigned>(m * n);
        demi::gemm(where, a.constant(), b.constant(), c.view(), {}, count_calls{calls.data(), n});
        std::vector<unsigned> found(m * n);
        where.download(calls.data(), found.data(), found.size());
        CAPTURE(m, n, k);
        CHECK(found == std::vector<unsigned>(m * n, 1));
    }
}

TEMPLATE_TEST_CASE("a long inner dimension is divided, and the bits are the same each time", "",
                   demi::float16, float) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    matrix_rng rng(10);
    for (const auto& [m, n, k, alignment] :
         {std::array<std::size_t, 4>{64, 40, 4096, 16}, {17, 33, 3001, 4}, {130, 150, 1600, 16}}) {
        CAPTURE(m, n, k, alignment);
        device_matrix<TestType> a(where, m, k, layout::row_major, alignment);
        device_matrix<TestType> b(where, k, n, layout::row_major, alignment);
        a.fill(rng);
        b.fill(rng);
        device_matrix<TestType> first(where, m, n, layout::row_major, alignment);
        device_matrix<TestType> second(where, m, n, layout::row_major, alignment);
        device_matrix<TestType> third(where, m, n, layout::column_major, alignment);
        first.fill(rng);
        second.set_each(
            [&](std::size_t r, std::size_t s) { return demi::convert<float>(first.host()(r, s)); });
        const auto multiply = [&](device_matrix<TestType>& c) {
            demi::gemm(where, a.constant(), b.constant(), c.view(), {0.5f, 0.25f});
        };
        multiply(first);
        const auto found = first.result();
        CHECK(count_wrong(0.5f, a.host(), b.host(), 0.25f, first.host(), found.view()) == 0);

        cudaGraph_t graph = nullptr;
        REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal) ==
                cudaSuccess);
        multiply(second);
        REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
        cudaGraphExec_t replay = nullptr;
        REQUIRE(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
        REQUIRE(cudaGraphLaunch(replay, stream.get()) == cudaSuccess);
        stream.synchronize();
        CHECK(same_bits(bits_of_result(second), bits_of_result(first)));
        CHECK(cudaGraphExecDestroy(replay) == cudaSuccess);
        CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    }
}

TEST_CASE("the plan fits the product and the device") {
    const std::array<demi::detail::tile_size, 2> tiles{demi::detail::tile_size{128, 128, 32, 65536},
                                                       demi::detail::tile_size{64, 64, 32, 32768}};
    const demi::detail::gemm_limits device{100, 100'000, std::size_t{1} << 20};
    const auto plan = [&](const demi::detail::gemm_size& size, auto limits) {
        return demi::detail::plan_gemm(size, tiles, limits);
    };
    CHECK(plan({4096, 4096, 4096, 1}, device).tile == 0);
    CHECK(plan({4096, 4096, 4096, 1}, device).parts == 1);
    CHECK(plan({64, 64, 64, 1}, device).tile == 1);
    CHECK(plan({64, 64, 64, 1000}, device).parts == 1);

    const auto divided = plan({64, 64, 10'000, 1}, device);
    CHECK(divided.parts > 4);
    CHECK(divided.part_depth % 32 == 0);
    CHECK((divided.parts - 1) * divided.part_depth < 10'000);
    CHECK(divided.parts * divided.part_depth >= 10'000);
    CHECK(divided.parts * 64 * 64 * 4 <= device.partial_bytes);

    auto without_memory = device;
    without_memory.partial_bytes = 0;
    CHECK(plan({64, 64, 10'000, 1}, without_memory).parts == 1);
    auto small = device;
    small.shared_bytes = 48'000;
    CHECK(plan({4096, 4096, 4096, 1}, small).tile == 1);
    small.shared_bytes = 1000;
    CHECK(plan({4096, 4096, 4096, 1}, small).tile == 1);
}

TEST_CASE("a batch gives the bits of single products") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    matrix_rng rng(11);
    using half = demi::float16;
    const demi::gemm_options options{0.5f, 2};

    SECTION("in lists of any shapes and places") {
        std::vector<device_matrix<half>> as, bs, batched, single;
        std::vector<matrix_view<half>> views_a, views_b, views_c;
        for (std::size_t i = 0; i < 9; ++i) {
            const std::size_t m = i < 4 ? 40 : 20 + i / 6 * 30;
            const layout order = i < 6 ? layout::row_major : layout::column_major;
            as.emplace_back(where, m, 30, layout::row_major, 4).fill(rng);
            bs.emplace_back(where, 30, 50, order, 4).fill(rng);
            batched.emplace_back(where, m, 50, order, 4).fill(rng);
            single.push_back(device_matrix<half>(where, m, 50, order, 4));
            single.back().set_each([&](std::size_t r, std::size_t s) {
                return demi::convert<float>(batched.back().host()(r, s));
            });
        }
        for (std::size_t i = 0; i < as.size(); ++i) {
            views_a.push_back(as[i].view());
            views_b.push_back(bs[i].view());
            views_c.push_back(batched[i].view());
            demi::gemm(where, as[i].constant(), bs[i].constant(), single[i].view(), options);
        }
        demi::gemm_batched(where, std::span<const matrix_view<half>>(views_a),
                           std::span<const matrix_view<half>>(views_b),
                           std::span<const matrix_view<half>>(views_c), options);
        for (std::size_t i = 0; i < as.size(); ++i) {
            CAPTURE(i);
            CHECK(same_bits(bits_of_result(batched[i]), bits_of_result(single[i])));
        }
    }

    SECTION("at equal distances, one operand shared") {
        device_matrix<half> a(where, 5 * 64, 32, layout::row_major, 16);
        device_matrix<half> b(where, 32, 24, layout::row_major, 16);
        device_matrix<half> batched(where, 5 * 64, 24, layout::row_major, 16);
        device_matrix<half> single(where, 5 * 64, 24, layout::row_major, 16);
        a.fill(rng);
        b.fill(rng);
        const auto rows_of = [](matrix_view<half> whole, std::size_t i) {
            return matrix_view<half>(&whole(64 * i, 0), 64, whole.columns(),
                                     whole.leading_dimension(), layout::row_major);
        };
        const auto strided = [&](matrix_view<half> whole) {
            return demi::strided_matrices<half>(rows_of(whole, 0), 64 * whole.leading_dimension(),
                                                5);
        };
        demi::gemm_batched(where, strided(a.view()), demi::strided_matrices<half>(b.view(), 0, 5),
                           strided(batched.view()));
        for (std::size_t i = 0; i < 5; ++i) {
            demi::gemm(where, rows_of(a.view(), i), b.constant(), rows_of(single.view(), i));
        }
        CHECK(same_bits(bits_of_result(batched), bits_of_result(single)));
        const auto found = single.result();
        CHECK(count_wrong(1.0f, a.host(), b.host(), 0.0f, single.host(), found.view()) == 0);
    }
}
