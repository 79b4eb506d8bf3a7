// SPDX-License-Identifier: MIT
#include <demi/host/host_backend.hpp>
#include <demi/kernels/epilogue.hpp>
#include <demi/kernels/float8_cast.hpp>
#include <demi/kernels/gemm.hpp>
#include <demi/kernels/gemm_batched.hpp>
#include <demi/kernels/packed_matrix.hpp>
#include <demi/kernels/watching_epilogue.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory_resource>
#include <string>
#include <support/backends.hpp>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <support/message_of.hpp>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace demi;

constexpr std::uint32_t infinity_bits = format_traits<float>::overflow_bits;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float largest = std::numeric_limits<float>::max();

float amax_after(float before, std::initializer_list<float> values) {
    const raise_amax watch(&before);
    for (const float value : values) watch(value, {});
    return before;
}

template <class Stored, class Real>
std::uint32_t flag_after(Real value) {
    std::uint32_t flag = 0;
    flag_non_finite<Stored>{&flag}(value, {});
    return flag;
}

/// The epilogue on a pack that does not cross this function's border; what passes.
template <class Epilogue>
std::array<float, 8> on_lanes(const Epilogue& function, const std::array<float, 8>& values) {
    std::array<float, 8> passed{};
    for (std::size_t i = 0; i < 8; i += 4) {
        function(lanes<4>::load(values.data() + i), {}).store(passed.data() + i);
    }
    return passed;
}

/// What a device does: one worker for each thread, and the end of each of them.
template <class Epilogue>
void with_workers(const Epilogue& function, const std::vector<float>& values) {
    auto even = function.begin();
    auto odd = function.begin();
    for (std::size_t i = 0; i < values.size(); ++i) (i % 2 == 0 ? even : odd)(values[i], {0, i});
    even.end();
    odd.end();
}

float largest_of(const std::vector<float>& values) {
    float result = 0;
    for (const float value : values) {
        if (is_finite(value)) result = std::max(result, demi::abs(value));
    }
    return result;
}

/// A product whose exact result is known: `a` is one column, `b` one row.
template <class T>
struct outer_product {
    padded_matrix<T> left, right;
    padded_matrix<float> result;

    outer_product(std::size_t rows, std::size_t columns, layout order)
        : left(rows, 1, layout::row_major, 0),
          right(1, columns, layout::row_major, 0),
          result(rows, columns, order, 1) {
        for (std::size_t r = 0; r < rows; ++r) left.view()(r, 0) = convert<T>(1.0f);
        for (std::size_t c = 0; c < columns; ++c) right.view()(0, c) = convert<T>(1.0f);
    }

    matrix_view<const T> a() const { return left.view(); }
    matrix_view<const T> b() const { return right.view(); }
};

}  // namespace

TEST_CASE("raise_amax raises to the largest finite magnitude and passes the value on") {
    CHECK(amax_after(0, {1, -3, 2}) == 3.0f);
    CHECK(amax_after(5, {1, -3, 2}) == 5.0f);
    CHECK(amax_after(0, {}) == 0.0f);
    CHECK(amax_after(0, {infinity, -infinity, from_bits<float>(0xffc00000u), 0x1p-149f}) ==
          0x1p-149f);
    CHECK(amax_after(0, {-largest, infinity}) == largest);

    float amax = 0;
    CHECK(to_bits(raise_amax(&amax)(from_bits<float>(0x7fc12345u), {})) == 0x7fc12345u);
    CHECK(raise_amax(&amax)(-2.5f, {}) == -2.5f);
    CHECK(amax == 2.5f);
}

TEST_CASE("raise_amax rounds a double to float, and does not count one beyond") {
    float amax = 0;
    const raise_amax watch(&amax);
    CHECK(watch(1.0 + 0x1p-30, {}) == 1.0 + 0x1p-30);
    CHECK(amax == 1.0f);
    watch(1.0e39, {});
    watch(-std::numeric_limits<double>::infinity(), {});
    watch(std::numeric_limits<double>::quiet_NaN(), {});
    CHECK(amax == 1.0f);
    watch(-static_cast<double>(largest), {});
    CHECK(amax == largest);
}

TEST_CASE("a pack counts all of its lanes") {
    for (std::size_t place = 0; place < 8; ++place) {
        std::array<float, 8> values{1, 2, 3, infinity, -infinity, 4, 0, 1};
        values[7] = from_bits<float>(0x7f800001u);
        if (place != 3 && place != 4 && place != 7) values[place] = -9;
        float amax = 0.5f;
        std::uint32_t flag = 0;
        CHECK(same_bits(on_lanes(raise_amax(&amax), values), values));
        CHECK(amax == largest_of({values.begin(), values.end()}));
        CHECK(same_bits(on_lanes(flag_non_finite(&flag), values), values));
        CHECK(flag == 1);

        std::array<float, 8> finite{1, 2, 3, -largest, 0, 0, 0, 0};
        std::uint32_t of_finite = 0;
        on_lanes(flag_non_finite(&of_finite), finite);
        CHECK(of_finite == 0);
        finite[place] = infinity;
        on_lanes(flag_non_finite(&of_finite), finite);
        CHECK(of_finite == 1);
    }
}

TEMPLATE_TEST_CASE("flag_non_finite knows where each format ends", "", float16, bfloat16,
                   float8_e4m3, float8_e5m2, float, double) {
    const std::uint32_t bound = detail::non_finite_bound<TestType>;
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
        const auto above = from_bits<float>(bound | sign);
        const auto below = from_bits<float>((bound - 1) | sign);
        CHECK_FALSE(is_finite(convert<TestType>(above)));
        CHECK(is_finite(convert<TestType>(below)));
        CHECK(flag_after<TestType>(above) == 1);
        CHECK(flag_after<TestType>(below) == 0);
        CHECK(flag_after<TestType>(convert<double>(above)) == 1);
        CHECK(flag_after<TestType>(convert<double>(below)) == 0);
        for (const std::uint32_t bits : {infinity_bits, infinity_bits + 1, 0x7fffffffu}) {
            CHECK(flag_after<TestType>(from_bits<float>(bits | sign)) == 1);
        }
        CHECK(flag_after<TestType>(from_bits<float>(sign)) == 0);
        CHECK(flag_after<TestType>(from_bits<float>(sign | 1u)) == 0);
    }
}

TEST_CASE("flag_non_finite sees what rounding makes of a value, and never clears") {
    CHECK(detail::non_finite_bound<float16> == to_bits(65520.0f));
    CHECK(detail::non_finite_bound<float8_e4m3> == to_bits(464.0f) + 1);
    CHECK(detail::non_finite_bound<float8_e5m2> == to_bits(61440.0f));
    CHECK(flag_after<float16>(70000.0f) == 1);
    CHECK(flag_after<bfloat16>(70000.0f) == 0);
    CHECK(flag_after<float>(1.0e39) == 1);
    CHECK(flag_after<double>(1.0e39) == 0);
    CHECK(flag_after<double>(std::numeric_limits<double>::infinity()) == 1);

    std::uint32_t flag = 1;
    CHECK(flag_non_finite(&flag)(1.0f, {}) == 1.0f);
    CHECK(flag == 1);
}

TEST_CASE("a bound is the first float of those that do not fit") {
    matrix_rng rng(3);
    std::size_t wrong = 0;
    for (int i = 0; i < 100'000; ++i) {
        const auto value = from_bits<float>(static_cast<std::uint32_t>(rng()));
        wrong += (flag_after<float16>(value) == 0) != is_finite(convert<float16>(value));
        wrong += (flag_after<float8_e4m3>(value) == 0) != is_finite(convert<float8_e4m3>(value));
    }
    CHECK(wrong == 0);
}

TEST_CASE("a null pointer is refused by name") {
    CHECK(message_of<invalid_argument>([] { raise_amax watch(nullptr); }) ==
          "raise_amax: amax is null, expected a float in the backend's memory");
    CHECK(message_of<invalid_argument>([] { flag_non_finite<float16> watch(nullptr); }) ==
          "flag_non_finite: flag is null, expected a std::uint32_t in the backend's memory");
}

TEST_CASE("in a composition each watches what stands before it") {
    float before = 0, after = 0;
    std::uint32_t flag = 0;
    const auto watched = raise_amax(&before) | relu{} | raise_amax(&after) | scale{1000} |
                         flag_non_finite<float16>(&flag);
    CHECK(watched(-9.0f, {}) == 0.0f);
    CHECK(watched(7.0f, {}) == 7000.0f);
    CHECK(before == 9.0f);
    CHECK(after == 7.0f);
    CHECK(flag == 0);
    watched(66.0f, {});
    CHECK(flag == 1);
    CHECK(detail::epilogue_on<decltype(watched), lanes<4>>);
    CHECK(detail::epilogue_on<decltype(watched), double>);
}

TEST_CASE("workers come to the same as the epilogue, and only those that watch begin one") {
    const std::vector<float> values{1, -infinity, -12, 3, 65519, 2};
    float before = 0, after = 20;
    std::uint32_t flag = 0, of_float = 0;
    const std::vector<float> offsets(values.size(), 1.0f);
    with_workers(raise_amax(&before) | bias(offsets) | relu{} |
                     then(raise_amax(&after), flag_non_finite<float16>(&flag)),
                 values);
    CHECK(before == 65519.0f);
    CHECK(after == 65520.0f);
    CHECK(flag == 1);
    with_workers(then(flag_non_finite(&of_float)), {largest});
    CHECK(of_float == 0);

    CHECK(detail::begun_epilogue<raise_amax>);
    CHECK(detail::begun_epilogue<decltype(relu{} | flag_non_finite(&flag))>);
    CHECK_FALSE(detail::begun_epilogue<decltype(relu{} | scale{2})>);
    using plain = decltype(relu{} | scale{2});
    CHECK(std::same_as<detail::epilogue_worker<plain>, const plain&>);
}

TEST_CASE("many threads may raise one number and set one flag") {
    float amax = 0;
    std::uint32_t flag = 0;
    const auto watched = raise_amax(&amax) | flag_non_finite<float8_e5m2>(&flag);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&watched, t] {
            for (int i = 0; i < 20'000; ++i) watched(static_cast<float>(4 * i + t), {});
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(amax == 79'999.0f);
    CHECK(flag == 1);
}

TEMPLATE_TEST_CASE("the watched result of any product is the float result's", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where;
    matrix_rng rng(5);
    std::size_t wrong = 0;
    for (int i = 0; i < 60; ++i) {
        const std::size_t rows = random_size(rng, 1, 70), columns = random_size(rng, 1, 70);
        const std::size_t depth = random_size(rng, 0, 30);
        padded_matrix<bfloat16> a(rows, depth, random_layout(rng), 1);
        padded_matrix<float16> b(depth, columns, random_layout(rng), 1);
        padded_matrix<float> passed(rows, columns, random_layout(rng), 1);
        padded_matrix<float16> c(rows, columns, random_layout(rng), 1);
        a.fill(rng, 100);
        b.fill(rng, 60);
        float amax = 0;
        std::uint32_t flag = 0;
        gemm(where, std::as_const(a).view(), std::as_const(b).view(), c.view(), {2, 0},
             store(passed.view()) | raise_amax(&amax) | flag_non_finite<float16>(&flag));
        float expected = 0;
        bool overflows = false;
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t s = 0; s < columns; ++s) {
                expected = std::max(expected, demi::abs(passed.view()(r, s)));
                overflows = overflows || !is_finite(c.view()(r, s));
            }
        }
        wrong += amax != expected;
        wrong += flag != (overflows ? 1u : 0u);
    }
    CHECK(wrong == 0);
}

TEST_CASE("every place of a result is watched, by any instruction set and number of threads") {
    const std::size_t rows = 37, columns = 45;
    std::size_t wrong = 0;
    for (const host_isa isa : available_isas()) {
        for (const auto order : {layout::row_major, layout::column_major}) {
            outer_product<bfloat16> of(rows, columns, order);
            const host_context context{isa, nullptr, std::pmr::new_delete_resource()};
            for (std::size_t place = 0; place < rows * columns; place += 13) {
                const matrix_position at{place / columns, place % columns};
                of.left.view()(at.row, 0) = convert<bfloat16>(300.0f);
                of.right.view()(0, at.column) = convert<bfloat16>(-300.0f);
                float amax = 0;
                std::uint32_t flag = 0;
                detail::host_gemm(context, 1.0f, of.a(), of.b(), 0.0f, of.result.view(),
                                  raise_amax(&amax) | flag_non_finite<float16>(&flag));
                wrong += amax != 90'000.0f || flag != 1;
                of.left.view()(at.row, 0) = convert<bfloat16>(infinity);
                amax = 0;
                flag = 0;
                detail::host_gemm(context, 1.0f, of.a(), of.b(), 0.0f, of.result.view(),
                                  raise_amax(&amax) | flag_non_finite(&flag));
                wrong += amax != 300.0f || flag != 1;
                of.left.view()(at.row, 0) = convert<bfloat16>(1.0f);
                of.right.view()(0, at.column) = convert<bfloat16>(1.0f);
            }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("threads, packed operands and batches watch as one product does") {
    matrix_rng rng(9);
    padded_matrix<float> a(200, 150, layout::row_major, 0), b(150, 190, layout::row_major, 0);
    padded_matrix<float> c(200, 190, layout::row_major, 0);
    const auto left = std::as_const(a.fill(rng)).view();
    const auto right = std::as_const(b.fill(rng)).view();
    gemm(host_backend(), left, right, c.view());
    const float expected = largest_of(c.memory());
    const auto part = [](auto whole) { return decltype(whole)(whole.data(), 20, whole.columns()); };

    for (const host_isa isa : available_isas()) {
        for (const std::size_t threads : {1u, 3u}) {
            const host_backend where(
                {.threads = threads, .executor = make_thread_executor(3), .isa = isa});
            std::size_t wrong = 0;
            const auto check = [&](const auto& multiply) {
                padded_matrix<float> found(200, 190, layout::row_major, 0);
                float amax = 0;
                std::uint32_t flag = 0;
                multiply(found.view(), raise_amax(&amax) | flag_non_finite<float8_e4m3>(&flag));
                wrong += amax != largest_of(found.memory()) || amax < 0.999f * expected;
                wrong += flag != 0;
            };
            check([&](auto to, const auto& watch) { gemm(where, left, right, to, {}, watch); });
            const packed_matrix<float, float> packed(where, right, operand_side::right,
                                                     layout::row_major);
            check([&](auto to, const auto& watch) { gemm(where, left, packed, to, {}, watch); });
            check([&](auto to, const auto& watch) {
                gemm_batched(where, strided_matrices(part(left), 20 * 150, 10),
                             strided_matrices(right, 0, 10),
                             strided_matrices(part(to), 20 * 190, 10), {}, watch);
            });
            CAPTURE(std::string(name(isa)), threads);
            CHECK(wrong == 0);
        }
    }
}

TEMPLATE_TEST_CASE("a product in double is watched in float", "", DEMI_TEST_BACKENDS) {
    const TestType where;
    const std::vector<double> a{1, 0x1p64, -0x1p65}, b{3, 0x1p-30, 0x1p63};
    std::vector<double> c(9);
    float amax = 0;
    std::uint32_t beyond_float = 0, beyond_double = 0;
    gemm(where, matrix_view<const double>(a.data(), 3, 1),
         matrix_view<const double>(b.data(), 1, 3), matrix_view<double>(c.data(), 3, 3), {},
         raise_amax(&amax) | flag_non_finite(&beyond_float) |
             flag_non_finite<double>(&beyond_double));
    CHECK(c[8] == -0x1p128);
    CHECK(amax == 0x1p127f);
    CHECK(beyond_float == 1);
    CHECK(beyond_double == 0);
}
