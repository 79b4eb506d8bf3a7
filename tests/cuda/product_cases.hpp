// SPDX-License-Identifier: MIT
/// Products of many shapes for tests.
#pragma once

#include <demi/kernels/gemm.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <support/catch.hpp>
#include <support/matrices.hpp>

struct product_case {
    std::size_t m, n, k;
    std::size_t layouts = 0;  ///< bits: of a, b, c
    std::size_t alignment = 16;
    demi::gemm_options options{};
};

/// Expects `check(now, rng)` to find nothing wrong in products of odd sizes up to `largest`, each
/// with other layouts, another alignment from `least` to 16, and another pair of factors.
template <class Check>
void for_odd_sizes(std::size_t largest, std::size_t step, std::size_t least, const Check& check) {
    matrix_rng rng(largest + step);
    std::size_t alignments = 1;
    while (least << alignments <= 16) ++alignments;
    std::size_t i = 0;
    for (std::size_t size = 1; size <= largest; size += step, ++i) {
        const auto other = [&] { return random_size(rng, 0, (largest - 1) / 2) * 2 + 1; };
        std::array<std::size_t, 3> sizes{size, other(), other()};
        std::rotate(sizes.begin(), sizes.begin() + i % 3, sizes.end());
        const product_case now{sizes[0],
                               sizes[1],
                               sizes[2],
                               i % 8,
                               least << (i / 8 + i) % alignments,
                               {i % 5 == 0 ? 0.75f : 1.0f, i % 3 == 0 ? -0.5f : 0.0f}};
        CAPTURE(now.m, now.n, now.k, now.layouts, now.alignment, now.options.alpha,
                now.options.beta);
        const std::size_t wrong = check(now, rng);
        CHECK(wrong == 0);
    }
}
