// SPDX-License-Identifier: MIT
/// GEMM in double: plain loops over rows, for checks and small models.
#pragma once

#include <demi/host/detail/gemm_finish.hpp>
#include <demi/host/host_context.hpp>
#include <demi/precision/convert.hpp>

#include <algorithm>
#include <cstddef>

namespace demi::inline DEMI_ABI {
namespace detail {

/// Computes one row of the result in pieces that stay in registers and the first level cache.
template <class A, class B, class C, class Epilogue>
void wide_gemm_row(std::size_t row, double alpha, const matrix_view<const A>& a,
                   const matrix_view<const B>& b, double beta, const matrix_view<C>& c,
                   const Epilogue& epilogue) {
    constexpr std::size_t piece = 256;
    for (std::size_t first = 0; first < c.columns(); first += piece) {
        const std::size_t count = std::min(piece, c.columns() - first);
        double sums[piece] = {};
        for (std::size_t k = 0; k < a.columns(); ++k) {
            const double left = convert<double>(a(row, k));
            for (std::size_t i = 0; i < count; ++i) {
                sums[i] += left * convert<double>(b(k, first + i));
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            C& place = c(row, first + i);
            double value = alpha * sums[i];
            if (beta != 0) value += beta * convert<double>(place);
            place = convert<C>(static_cast<double>(epilogue(value, {row, first + i})));
        }
    }
}

template <class A, class B, class C, class Epilogue>
void wide_gemm(const host_context& context, double alpha, const matrix_view<const A>& a,
               const matrix_view<const B>& b, double beta, const matrix_view<C>& c,
               const Epilogue& epilogue) {
    const auto row = [&](std::size_t i) { wide_gemm_row(i, alpha, a, b, beta, c, epilogue); };
    const bool worth_threads = c.columns() * std::max<std::size_t>(a.columns(), 1) >=
                               parallel_threshold / std::max<std::size_t>(c.rows(), 1);
    if (context.executor != nullptr && worth_threads) {
        context.executor->run(c.rows(), row);
    } else {
        for (std::size_t i = 0; i < c.rows(); ++i) row(i);
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
