// SPDX-License-Identifier: MIT
/// One matrix product with everything that multiplies it.
#pragma once

#include "arrays.hpp"
#include "peers.hpp"
#include "session.hpp"
#include <demi/kernels/cast.hpp>
#include <demi/kernels/gemm.hpp>

#include <cmath>
#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

struct named_product {
    product shape;
    std::string name;
};

inline named_product make_named(std::size_t m, std::size_t n, std::size_t k, const char* letters) {
    return {{m, n, k, letters[0] == 'T', letters[1] == 'T'},
            std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " " + letters};
}

/// M x N x K; the last three are layers of a network with 64 samples at a time.
inline std::vector<named_product> shapes(bool quick) {
    std::vector<named_product> all;
    for (const char* letters : {"NN", "NT", "TN"}) {
        const bool plain = std::string_view(letters) == "NN";
        for (const std::size_t n : {128u, 256u, 512u, 1024u, 2048u}) {
            const bool in_quick = n == 512 || (plain && n < 2048);
            if (!quick || in_quick) all.push_back(make_named(n, n, n, letters));
        }
        if (quick && !plain) continue;
        all.push_back(make_named(64, 4096, 1024, letters));
        all.push_back(make_named(4096, 64, 1024, letters));
        all.push_back(make_named(1024, 1024, 64, letters));
    }
    return all;
}

template <class T>
demi::matrix_view<const T> stored(const array<T>& memory, std::size_t rows, std::size_t columns,
                                  bool transposed) {
    if (!transposed) return {memory.data(), rows, columns};
    return demi::transposed(demi::matrix_view<const T>(memory.data(), columns, rows));
}

/// Factors in format T, the same values in float, and a result for each contender.
template <class T>
class product_case {
public:
    product_case(session& where, const product& shape)
        : where_(where),
          shape_(shape),
          a_(shape.m * shape.k),
          b_(shape.k * shape.n),
          wide_a_(a_.size()),
          wide_b_(b_.size()) {
        fill_uniform(wide_a_.span(), 1);
        fill_uniform(wide_b_.span(), 2);
        demi::cast(where.backend(), std::as_const(wide_a_).span(), a_.span());
        demi::cast(where.backend(), std::as_const(wide_b_).span(), b_.span());
        demi::cast(where.backend(), std::as_const(a_).span(), wide_a_.span());
        demi::cast(where.backend(), std::as_const(b_).span(), wide_b_.span());
    }

    session& where() { return where_; }
    const product& shape() const { return shape_; }
    const array<T>& a() const { return a_; }
    const array<T>& b() const { return b_; }
    array<float>& wide_a() { return wide_a_; }
    array<float>& wide_b() { return wide_b_; }

    /// Adds a contender made by `make(result)`, after a look at what it computes.
    template <class Make>
    void add(const std::string& name, role part, Make make) {
        array<float>& result = results_.emplace_back(shape_.m * shape_.n);
        task run = make(result.data());
        if (!run) return;
        run();
        check(name, result);
        all_.push_back({name, part, shape_.flops(), std::move(run)});
    }

    auto left() const { return stored(a_, shape_.m, shape_.k, shape_.transpose_a); }
    auto right() const { return stored(b_, shape_.k, shape_.n, shape_.transpose_b); }

    void add_limit(contender limit) { all_.push_back(std::move(limit)); }

    void add_demi(role part, const std::string& name = "demi") {
        add(name, part, [&](float* c) { return multiply(a_, b_, c); });
    }

    void add_demi_float() {
        add("demi f32", role::note, [&](float* c) { return multiply(wide_a_, wide_b_, c); });
    }

    /// `implementation` is what oneDNN says that it ran, if anything.
    void measure(const std::string& work, const std::string& name,
                 const std::string& implementation, const std::vector<criterion>& questions) {
        where_.measure({.work = work,
                        .name = name,
                        .unit = "GFLOP/s",
                        .remark = implementation.empty() ? "" : "oneDNN ran " + implementation},
                       all_, questions);
    }

private:
    template <class Number>
    task multiply(const array<Number>& a, const array<Number>& b, float* c) {
        const auto left = stored(a, shape_.m, shape_.k, shape_.transpose_a);
        const auto right = stored(b, shape_.k, shape_.n, shape_.transpose_b);
        const demi::matrix_view<float> result(c, shape_.m, shape_.n);
        return [=, this] { demi::gemm(where_.backend(), left, right, result); };
    }

    /// Compares some entries with sums in double; the bound is that of any order of float sums.
    void check(const std::string& name, const array<float>& result) const {
        const auto a = stored(wide_a_, shape_.m, shape_.k, shape_.transpose_a);
        const auto b = stored(wide_b_, shape_.k, shape_.n, shape_.transpose_b);
        std::mt19937_64 random(3);
        for (int i = 0; i < 64; ++i) {
            const std::size_t r = random() % shape_.m;
            const std::size_t c = random() % shape_.n;
            double sum = 0;
            double magnitude = 0;
            for (std::size_t k = 0; k < shape_.k; ++k) {
                const double term = static_cast<double>(a(r, k)) * static_cast<double>(b(k, c));
                sum += term;
                magnitude += std::abs(term);
            }
            const double error = std::abs(static_cast<double>(result[r * shape_.n + c]) - sum);
            require(error <= magnitude * static_cast<double>(shape_.k + 1) * 0x1p-23, name,
                    "a product's entry is off by " + std::to_string(error));
        }
    }

    session& where_;
    product shape_;
    array<T> a_;
    array<T> b_;
    array<float> wide_a_;
    array<float> wide_b_;
    std::deque<array<float>> results_;
    std::vector<contender> all_;
};

}  // namespace bench
