// SPDX-License-Identifier: MIT
#include <demi/cuda/policy_backend.cuh>
#include <demi/kernels/gemm.hpp>
#include <demi/kernels/gemm_batched.hpp>

#include <cuda/device_matrix.hpp>
#include <cuda/fused_product.hpp>
#include <cuda/product_cases.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <vector>

namespace {

using demi::layout;
using demi::matrix_view;
using tf32_backend = demi::cuda_backend_for<demi::tf32>;

struct sums_in_float16 {
    using compute_type = demi::float16;
    using accumulate_type = demi::float16;
};
using half_backend = demi::cuda_backend_for<sums_in_float16>;

using demi::detail::math_of_policy;
using demi::detail::product_math;
static_assert(math_of_policy<demi::tf32, float, float>() == product_math::tf32_factors);
static_assert(math_of_policy<demi::tf32, float, demi::float16>() == product_math::usual);
static_assert(math_of_policy<demi::tf32, __half, __half>() == product_math::usual);
static_assert(math_of_policy<demi::full_float32, float, float>() == product_math::usual);
static_assert(math_of_policy<demi::mixed_float16, __half, __half>() == product_math::usual);
static_assert(math_of_policy<sums_in_float16, __half, demi::float16>() == product_math::half_sums);
static_assert(math_of_policy<sums_in_float16, float, float>() == product_math::usual);
static_assert(math_of_policy<sums_in_float16, demi::bfloat16, demi::bfloat16>() ==
              product_math::usual);

/// To nearest with 10 mantissa bits, ties away from zero: by arithmetic, not by bits.
float rounded_to_tf32(float value) {
    if (value == 0 || !demi::is_finite(value)) return value;
    int exponent = 0;
    static_cast<void>(std::frexp(value, &exponent));
    const double quantum = std::ldexp(1.0, exponent - 11);
    return static_cast<float>(std::round(static_cast<double>(value) / quantum) * quantum);
}

padded_matrix<float> rounded_to_tf32(matrix_view<const float> matrix) {
    padded_matrix<float> result(matrix.rows(), matrix.columns(), matrix.order(), 0);
    for (std::size_t r = 0; r < matrix.rows(); ++r) {
        for (std::size_t s = 0; s < matrix.columns(); ++s) {
            result.view()(r, s) = rounded_to_tf32(matrix(r, s));
        }
    }
    return result;
}

/// Elements further from the product of the rounded factors than a float sum may be.
template <class Multiply>
std::size_t wrong_in_tf32(const demi::cuda_backend& where, const product_case& now, matrix_rng& rng,
                          const Multiply& multiply) {
    device_matrix<float> a(where, now.m, now.k, bit_layout(now.layouts, 0), now.alignment);
    device_matrix<float> b(where, now.k, now.n, bit_layout(now.layouts, 1), now.alignment);
    device_matrix<float> c(where, now.m, now.n, bit_layout(now.layouts, 2), now.alignment);
    a.fill(rng);
    b.fill(rng);
    if (now.options.beta != 0) c.fill(rng);
    multiply(a.constant(), b.constant(), c.view());
    const padded_matrix<float> left = rounded_to_tf32(a.host());
    const padded_matrix<float> right = rounded_to_tf32(b.host());
    const padded_matrix<float> found = c.result();
    return count_wrong<float, float, float>(now.options.alpha, left.view(), right.view(),
                                            now.options.beta, c.host(), found.view()) +
           (found.padding_is_untouched() ? 0 : 1'000'000);
}

/// Elements further from the exact product than sums may be that are rounded to float16 for every
/// four values of the depth.
std::size_t wrong_in_half(const half_backend& where, const product_case& now, matrix_rng& rng) {
    using half = demi::float16;
    device_matrix<half> a(where, now.m, now.k, bit_layout(now.layouts, 0), now.alignment);
    device_matrix<half> b(where, now.k, now.n, bit_layout(now.layouts, 1), now.alignment);
    device_matrix<half> c(where, now.m, now.n, bit_layout(now.layouts, 2), now.alignment);
    a.fill(rng);
    b.fill(rng);
    if (now.options.beta != 0) c.fill(rng);
    demi::gemm(where, a.constant(), b.constant(), c.view(), now.options);
    const padded_matrix<half> found = c.result();
    std::size_t wrong = found.padding_is_untouched() ? 0 : 1'000'000;
    for (std::size_t r = 0; r < now.m; ++r) {
        for (std::size_t s = 0; s < now.n; ++s) {
            const auto value = [](half x) { return demi::convert<double>(x); };
            double exact = 0, magnitude = 0;
            for (std::size_t i = 0; i < now.k; ++i) {
                const double term = value(a.host()(r, i)) * value(b.host()(i, s));
                exact += term;
                magnitude += std::fabs(term);
            }
            const double alpha = now.options.alpha, beta = now.options.beta;
            exact = alpha * exact + (beta == 0 ? 0 : beta * value(c.host()(r, s)));
            const double allowed =
                static_cast<double>(now.k / 4 + 2) * 0x1p-11 * (magnitude + std::fabs(exact)) +
                0x1p-20;
            if (!(std::fabs(value(found.view()(r, s)) - exact) <= allowed)) ++wrong;
        }
    }
    return wrong;
}

/// Every value of a matrix of one row, as the only summand of a product.
template <class Backend>
std::vector<float> multiplied_by_one(const Backend& where, const std::vector<float>& values,
                                     layout order, bool on_the_left) {
    const std::size_t count = values.size();
    device_matrix<float> one(where, 1, 1, layout::row_major);
    device_matrix<float> c(where, on_the_left ? count : 1, on_the_left ? 1 : count,
                           layout::row_major);
    one.set(0, 0, 1);
    auto memory = where.template make_buffer<float>(count);
    where.upload(values.data(), memory.data(), count);
    if (on_the_left) {
        const matrix_view<const float> a(memory.data(), count, 1, order);
        demi::gemm(where, a, one.constant(), c.view());
    } else {
        const matrix_view<const float> b(memory.data(), 1, count, order);
        demi::gemm(where, one.constant(), b, c.view());
    }
    const auto found = c.result();
    std::vector<float> result;
    for (std::size_t i = 0; i < count; ++i) {
        result.push_back(on_the_left ? found.view()(i, 0) : found.view()(0, i));
    }
    return result;
}

std::vector<float> telling_values() {
    const auto bits = [](std::uint32_t x) { return demi::from_bits<float>(x); };
    std::vector<float> values{1 + 0x1p-11f,
                              -1 - 0x1p-11f,
                              1 + 0x1p-11f - 0x1p-23f,
                              1 + 0x1p-10f + 0x1p-11f,
                              2 - 0x1p-12f,
                              bits(0x7f7fffff),
                              bits(0x7f7fefff),
                              HUGE_VALF,
                              -HUGE_VALF,
                              bits(0x7f800001),
                              bits(0xff800fff),
                              bits(0x7fffffff),
                              bits(0xffffffff),
                              bits(0x7fc00000),
                              0.0f,
                              1.0f / 3};
    std::mt19937 rng(3);
    while (values.size() < 200) {
        const float value = bits(static_cast<std::uint32_t>(rng()));
        // Subnormal numbers are up to the device.
        if (std::fabs(value) >= 0x1p-120f || demi::is_nan(value)) values.push_back(value);
    }
    return values;
}

}  // namespace

TEST_CASE("products in TF32 are those of the rounded factors within the error of a float sum") {
    const demi::cuda_stream stream;
    const tf32_backend where(stream);
    for_odd_sizes(131, 5, 4, [&](const product_case& now, matrix_rng& rng) {
        return wrong_in_tf32(where, now, rng, [&](auto a, auto b, auto c) {
            demi::gemm(where, a, b, c, now.options);
        });
    });
}

TEST_CASE("every tile computes every pair of layouts in TF32") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    if (where.context().device().compute_capability < 80) return;
    matrix_rng rng(5);
    for (std::size_t layouts = 0; layouts < 4; ++layouts) {
        for (const auto& [m, n, k] : {std::array<std::size_t, 3>{264, 136, 40}, {130, 120, 33}}) {
            CAPTURE(layouts, m, n, k);
            const auto tile = [&](auto shape) {
                return wrong_in_tf32(
                    where, {m, n, k, layouts, 16}, rng, [&](auto a, auto b, auto c) {
                        auto product = demi::detail::make_product<product_math::tf32_factors>(
                            1, a, b, 0, c, demi::no_epilogue{}, false);
                        product.has_wide_lines = true;
                        demi::detail::launch_mma<decltype(shape), true>(where.context(), product,
                                                                        {16, 16});
                    });
            };
            CHECK(tile(demi::mma_tile<256, 128, 32, 64, 64, 3>{}) == 0);
            CHECK(tile(demi::mma_tile<128, 128, 32, 64, 64, 4>{}) == 0);
            CHECK(tile(demi::mma_tile<64, 64, 32, 32, 32, 4>{}) == 0);
        }
    }
}

TEST_CASE("factors are rounded to TF32 on request only, and stay NaN or infinite") {
    const demi::cuda_stream stream;
    const demi::cuda_backend plain(stream);
    const std::vector<float> values = telling_values();
    const bool has_tensor_cores = plain.context().device().compute_capability >= 80;
    for (const layout order : {layout::row_major, layout::column_major}) {
        for (const bool on_the_left : {true, false}) {
            CAPTURE(order, on_the_left);
            const auto exact = multiplied_by_one(plain, values, order, on_the_left);
            const auto rounded = multiplied_by_one(demi::cuda_backend_for<demi::tf32>(plain),
                                                   values, order, on_the_left);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < values.size(); ++i) {
                const float expected = has_tensor_cores ? rounded_to_tf32(values[i]) : values[i];
                const bool right = demi::is_nan(values[i])
                                       ? demi::is_nan(exact[i]) && demi::is_nan(rounded[i])
                                       : exact[i] == values[i] && rounded[i] == expected;
                if (!right) ++wrong;
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("a product in TF32 has an epilogue, a 16-bit result and a divided depth like any other") {
    const demi::cuda_stream stream;
    const tf32_backend where(stream);
    const std::size_t m = 70, n = 40;
    for (const std::size_t k : {std::size_t{40}, std::size_t{2048}}) {
        for (const layout order : {layout::row_major, layout::column_major}) {
            device_matrix<float> a(where, m, k, layout::row_major, 16);
            device_matrix<float> b(where, k, n, layout::column_major, 16);
            device_matrix<demi::float16> c(where, m, n, order, 16);
            device_matrix<float> offsets(where, 1, n, layout::row_major);
            a.set_each(small_integer);
            b.set_each(small_integer);
            offsets.set_each([](std::size_t, std::size_t s) { return small_integer(s, 1); });
            demi::gemm(where, a.constant(), b.constant(), c.view(), {0.125f},
                       demi::bias<float>(offsets.view().data()));
            const auto found = c.result();
            std::size_t wrong = 0;
            for (std::size_t r = 0; r < m; ++r) {
                for (std::size_t s = 0; s < n; ++s) {
                    const auto expected = demi::convert<demi::float16>(static_cast<float>(
                        0.125 * sum_of_small_integers(r, s, k) + double{small_integer(s, 1)}));
                    if (!same_bits(found.view()(r, s), expected)) ++wrong;
                }
            }
            CAPTURE(k, order);
            CHECK(wrong == 0);
            CHECK(found.padding_is_untouched());
        }
    }
}

TEST_CASE("long inner dimensions in TF32 are within the bound, and batches give the same bits") {
    const demi::cuda_stream stream;
    const tf32_backend where(stream);
    matrix_rng rng(10);
    for (const product_case& now :
         {product_case{64, 40, 4096, 0, 16, {0.5f, 0.25f}}, {17, 33, 3001, 5, 4}}) {
        CAPTURE(now.m, now.n, now.k);
        const std::size_t wrong = wrong_in_tf32(where, now, rng, [&](auto a, auto b, auto c) {
            demi::gemm(where, a, b, c, now.options);
        });
        CHECK(wrong == 0);
    }

    const std::size_t count = 3, m = 32, n = 24, k = 32;
    device_matrix<float> a(where, count * m, k, layout::row_major, 16);
    device_matrix<float> b(where, k, n, layout::row_major, 16);
    device_matrix<float> batched(where, count * m, n, layout::row_major, 16);
    device_matrix<float> single(where, count * m, n, layout::row_major, 16);
    a.fill(rng);
    b.fill(rng);
    const auto rows_of = [](matrix_view<float> whole, std::size_t i) {
        return matrix_view<float>(&whole(m * i, 0), m, whole.columns(), whole.leading_dimension(),
                                  layout::row_major);
    };
    const auto strided = [&](matrix_view<float> whole) {
        return demi::strided_matrices<float>(rows_of(whole, 0), m * whole.leading_dimension(),
                                             count);
    };
    demi::gemm_batched(where, strided(a.view()), demi::strided_matrices<float>(b.view(), 0, count),
                       strided(batched.view()));
    for (std::size_t i = 0; i < count; ++i) {
        demi::gemm(where, rows_of(a.view(), i), b.constant(), rows_of(single.view(), i));
    }
    CHECK(same_bits(batched.result().memory(), single.result().memory()));
    const padded_matrix<float> left = rounded_to_tf32(a.host());
    const padded_matrix<float> right = rounded_to_tf32(b.host());
    const padded_matrix<float> found = single.result();
    CHECK(count_wrong<float, float, float>(1, left.view(), right.view(), 0, single.host(),
                                           found.view()) == 0);
}

TEST_CASE("sums in float16 are within the error of their roundings") {
    const demi::cuda_stream stream;
    const half_backend where(stream);
    for_odd_sizes(131, 7, 2, [&](const product_case& now, matrix_rng& rng) {
        return wrong_in_half(where, now, rng);
    });
    matrix_rng rng(12);
    CHECK(wrong_in_half(where, {24, 40, 1024, 0, 16, {0.5f, 2}}, rng) == 0);
}

TEST_CASE("sums are kept in float16 on request only") {
    const demi::cuda_stream stream;
    const demi::cuda_backend plain(stream);
    const half_backend where(plain);
    const bool has_tensor_cores = plain.context().device().compute_capability >= 80;
    const std::size_t k = 144;
    for (std::size_t layouts = 0; layouts < 4; ++layouts) {
        CAPTURE(layouts);
        device_matrix<demi::float16> a(where, 3, k, bit_layout(layouts, 0));
        device_matrix<demi::float16> b(where, k, 1, bit_layout(layouts, 1));
        device_matrix<demi::float16> c(where, 3, 1, layout::row_major);
        // A sum of small integers, one that overflows, and 2048 + 8 in steps apart.
        a.set_each([](std::size_t r, std::size_t i) {
            if (r == 0) return small_integer(1, i);
            if (r == 1) return i % 16 == 0 && i < 64 ? 32768.0f : 0.0f;
            return i == 0 ? 2048.0f : i % 16 == 0 ? 1.0f : 0.0f;
        });
        b.set_each([](std::size_t, std::size_t) { return 1.0f; });
        float exact = 0;
        for (std::size_t i = 0; i < k; ++i) exact += small_integer(1, i);
        const auto check = [&](const auto& backend, float overflown, float rounded) {
            demi::gemm(backend, a.constant(), b.constant(), c.view(), {0.25f});
            const auto found = c.result();
            CHECK(demi::convert<float>(found.view()(0, 0)) == 0.25f * exact);
            CHECK(demi::convert<float>(found.view()(1, 0)) == 0.25f * overflown);
            CHECK(demi::convert<float>(found.view()(2, 0)) == 0.25f * rounded);
        };
        check(plain, 131072, 2056);
        if (has_tensor_cores) check(where, HUGE_VALF, 2048);
    }
}
