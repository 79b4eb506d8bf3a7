// SPDX-License-Identifier: MIT
#include <demi/cuda/policy_backend.cuh>
#include <demi/kernels/gemm.hpp>
#include <demi/kernels/gemm_batched.hpp>

#include <cuda/device_matrix.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/matrices.hpp>

namespace {

using demi::layout;
using demi::matrix_view;
using tf32_backend = demi::cuda_backend_for<demi::tf32>;

/// To nearest with 10 mantissa bits, ties away from zero: by arithmetic, not by bits.
float rounded_to_tf32(float value) {
    if (value == 0 || !demi::is_finite(value)) return value;
    int exponent = 0;
    const double fraction = std::frexp(static_cast<double>(value), &exponent);
    return static_cast<float>(std::ldexp(std::round(std::ldexp(fraction, 11)), exponent - 11));
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

struct tf32_case {
    std::size_t m, n, k;
    std::size_t layouts;
    std::size_t alignment;
    demi::gemm_options options{};
};

/// Elements further from the product of the rounded factors than a float sum may be.
std::size_t wrong_elements(const tf32_backend& where, const tf32_case& now, matrix_rng& rng) {
    device_matrix<float> a(where, now.m, now.k, bit_layout(now.layouts, 0), now.alignment);
    device_matrix<float> b(where, now.k, now.n, bit_layout(now.layouts, 1), now.alignment);
    device_matrix<float> c(where, now.m, now.n, bit_layout(now.layouts, 2), now.alignment);
    a.fill(rng);
    b.fill(rng);
    if (now.options.beta != 0) c.fill(rng);
    demi::gemm(where, a.constant(), b.constant(), c.view(), now.options);
    const auto left = rounded_to_tf32(a.host());
    const auto right = rounded_to_tf32(b.host());
    const padded_matrix<float> found = c.result();
    const matrix_view<const float> exact_a = left.view();
    const matrix_view<const float> exact_b = right.view();
    return count_wrong(now.options.alpha, exact_a, exact_b, now.options.beta, c.host(),
                       found.view()) +
           (found.padding_is_untouched() ? 0 : 1'000'000);
}

}  // namespace

TEST_CASE("products in TF32 are those of the rounded factors within the error of a float sum") {
    const demi::cuda_stream stream;
    const tf32_backend where(stream);
    matrix_rng rng(1);
    std::size_t i = 0;
    for (std::size_t size = 1; size <= 131; size += 5, ++i) {
        std::array<std::size_t, 3> sizes{size, random_size(rng, 0, 65) * 2 + 1,
                                         random_size(rng, 0, 65) * 2 + 1};
        std::rotate(sizes.begin(), sizes.begin() + i % 3, sizes.end());
        const tf32_case now{sizes[0],
                            sizes[1],
                            sizes[2],
                            i % 8,
                            std::size_t{4} << (i / 8 + i) % 3,
                            {i % 5 == 0 ? 0.75f : 1.0f, i % 3 == 0 ? -0.5f : 0.0f}};
        CAPTURE(now.m, now.n, now.k, now.layouts, now.alignment, now.options.alpha,
                now.options.beta);
        const std::size_t wrong = wrong_elements(where, now, rng);
        CHECK(wrong == 0);
    }
}
