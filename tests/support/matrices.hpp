// SPDX-License-Identifier: MIT
/// Matrices with poisoned padding, and how far a product may be from the exact one.
#pragma once

#include <demi/core/matrix_view.hpp>
#include <demi/host/isa.hpp>
#include <demi/precision/convert.hpp>

#include <cmath>
#include <cstddef>
#include <random>
#include <support/bits.hpp>
#include <vector>

using matrix_rng = std::mt19937_64;

inline std::size_t random_size(matrix_rng& rng, std::size_t least, std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(least, most)(rng);
}

inline demi::layout random_layout(matrix_rng& rng) {
    return rng() % 2 == 0 ? demi::layout::row_major : demi::layout::column_major;
}

/// A matrix that owns its memory; what lies between and behind its lines is NaN.
template <class T>
class padded_matrix {
public:
    padded_matrix(std::size_t rows, std::size_t columns, demi::layout order, std::size_t padding)
        : rows_(rows),
          columns_(columns),
          leading_((order == demi::layout::row_major ? columns : rows) + padding),
          order_(order),
          memory_(leading_ * (order == demi::layout::row_major ? rows : columns) + padding,
                  poison()) {}

    static T poison() { return demi::from_bits<T>(demi::format_traits<T>::quiet_nan_bits); }

    demi::matrix_view<T> view() { return {memory_.data(), rows_, columns_, leading_, order_}; }
    demi::matrix_view<const T> view() const {
        return {memory_.data(), rows_, columns_, leading_, order_};
    }

    padded_matrix& fill(matrix_rng& rng, float largest = 1) {
        std::uniform_real_distribution<float> uniform(-largest, largest);
        for (std::size_t r = 0; r < rows_; ++r) {
            for (std::size_t c = 0; c < columns_; ++c) {
                view()(r, c) = demi::convert<T>(uniform(rng));
            }
        }
        return *this;
    }

    bool padding_is_untouched() const {
        std::vector<T> expected(memory_.size(), poison());
        for (std::size_t r = 0; r < rows_; ++r) {
            for (std::size_t c = 0; c < columns_; ++c) {
                const T& element = view()(r, c);
                expected[static_cast<std::size_t>(&element - memory_.data())] = element;
            }
        }
        return same_bits(memory_, expected);
    }

    const std::vector<T>& memory() const { return memory_; }

private:
    std::size_t rows_, columns_, leading_;
    demi::layout order_;
    std::vector<T> memory_;
};

/// Elements of `c` that are further from `alpha a b + beta old` than the rounding errors of a float
/// sum in any order, and of the result's format, allow; NaN always is. `inexact`: the share of the
/// terms' magnitudes by which sums of products may be off besides.
template <class A, class B, class C>
std::size_t count_wrong(float alpha, demi::matrix_view<const A> a, demi::matrix_view<const B> b,
                        float beta, demi::matrix_view<const C> old, demi::matrix_view<const C> c,
                        double inexact = 0) {
    using format = demi::format_traits<C>;
    const bool plain = alpha == 1 && beta == 0;
    const double roundings = static_cast<double>(a.columns()) + (plain ? 2 : 4);
    std::size_t wrong = 0;
    for (std::size_t row = 0; row < c.rows(); ++row) {
        for (std::size_t column = 0; column < c.columns(); ++column) {
            double exact = 0;
            double magnitude = 0;
            for (std::size_t k = 0; k < a.columns(); ++k) {
                const double term =
                    demi::convert<double>(a(row, k)) * demi::convert<double>(b(k, column));
                exact += term;
                magnitude += std::fabs(term);
            }
            exact *= static_cast<double>(alpha);
            magnitude *= std::fabs(static_cast<double>(alpha));
            if (beta != 0) {
                const double term =
                    static_cast<double>(beta) * demi::convert<double>(old(row, column));
                exact += term;
                magnitude += std::fabs(term);
            }
            const double sum_error = (roundings * 0x1p-24 + inexact) * magnitude;
            const double output_error = std::fabs(exact) * format::epsilon * 0.501 +
                                        sum_error * format::epsilon + format::min_subnormal * 0.5;
            const double error = std::fabs(demi::convert<double>(c(row, column)) - exact);
            const bool same_format_as_sum = demi::same_format<C, float>;
            if (!(error <= sum_error + (same_format_as_sum ? 0 : output_error))) ++wrong;
        }
    }
    return wrong;
}

/// The instruction sets that this machine runs.
inline std::vector<demi::host_isa> available_isas() {
    std::vector<demi::host_isa> isas;
    for (const auto isa : {demi::host_isa::portable, demi::host_isa::avx2, demi::host_isa::avx512,
                           demi::host_isa::avx512_bf16}) {
        if (isa <= demi::detected_host_isa()) isas.push_back(isa);
    }
    return isas;
}
