// SPDX-License-Identifier: MIT
/// Products with epilogues whose every value is known.
#pragma once

#include <demi/kernels/epilogue.hpp>
#include <demi/kernels/gemm.hpp>
#include <demi/kernels/watching_epilogue.hpp>

#include <cuda/device_matrix.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <support/catch.hpp>

inline float small_integer(std::size_t row, std::size_t column) {
    return static_cast<float>((row * 7 + column * 3) % 9) - 4;
}

/// An element of the product of two matrices of small integers; exact.
inline float sum_of_small_integers(std::size_t row, std::size_t column, std::size_t depth) {
    float sum = 0;
    for (std::size_t i = 0; i < depth; ++i) sum += small_integer(row, i) * small_integer(i, column);
    return sum;
}

/// Checks that epilogues see each value once, at its place. `multiply(a, b, c, options, epilogue)`
/// is for all layouts, and for results whose lines are stored in pieces and such whose are not.
template <class T, class Multiply>
void check_fused_products(const demi::cuda_backend& where, std::size_t m, std::size_t n,
                          std::size_t k, const Multiply& multiply) {
    for (std::size_t layouts = 0; layouts < 8; ++layouts) {
        for (const std::size_t alignment : {std::size_t{16}, sizeof(T)}) {
            device_matrix<T> a(where, m, k, bit_layout(layouts, 0), 16);
            device_matrix<T> b(where, k, n, bit_layout(layouts, 1), 16);
            device_matrix<T> c(where, m, n, bit_layout(layouts, 2), alignment);
            device_matrix<T> before(where, m, n, bit_layout(~layouts, 2));
            device_matrix<float> offsets(where, 1, n, demi::layout::row_major);
            auto amax = where.make_buffer<float>(1);
            a.set_each(small_integer);
            b.set_each(small_integer);
            c.set_each([](std::size_t r, std::size_t) { return static_cast<float>(r % 3); });
            offsets.set_each([](std::size_t, std::size_t s) { return small_integer(s, 1); });
            multiply(
                a.constant(), b.constant(), c.view(), demi::gemm_options{0.25f, 2},
                demi::then(demi::bias<float>(offsets.view().data()), demi::store<T>(before.view()),
                           demi::raise_amax(amax.data()), demi::gelu{}));
            const auto found = c.result();
            const auto kept = before.result();
            std::size_t wrong = 0;
            float largest = 0;
            for (std::size_t r = 0; r < m; ++r) {
                for (std::size_t s = 0; s < n; ++s) {
                    const float value = 0.25f * sum_of_small_integers(r, s, k) +
                                        2 * static_cast<float>(r % 3) + small_integer(s, 1);
                    largest = std::max(largest, std::fabs(value));
                    const float result = demi::gelu{}(value);
                    const float stored = demi::convert<float>(found.view()(r, s));
                    const double epsilon = demi::format_traits<T>::epsilon;
                    const double allowed = std::fabs(result) * epsilon + 1e-6;
                    const bool right = demi::convert<float>(kept.view()(r, s)) == value &&
                                       std::fabs(stored - result) <= allowed;
                    if (!right) ++wrong;
                }
            }
            CAPTURE(layouts, alignment);
            CHECK(wrong == 0);
            CHECK(where.read(amax.data()).get() == largest);
            CHECK(found.padding_is_untouched());
            CHECK(kept.padding_is_untouched());
        }
    }
}
