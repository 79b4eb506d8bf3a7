// SPDX-License-Identifier: MIT
/// Matrix products: float, bfloat16 and float16 factors, float results.
#include "hand_casts.hpp"
#include "limits.hpp"
#include "product_case.hpp"
#include <demi/kernels/packed_matrix.hpp>
#include <demi/precision/bfloat16.hpp>
#include <demi/precision/float16.hpp>

#include <memory>
#include <type_traits>

namespace bench {

namespace {

criterion of_peak(const std::string& work, const std::string& peak) {
    return {.work = work, .against = peak, .part = role::limit};
}

void measure_float(session& where, const named_product& one) {
    const std::string work = "f32 GEMM";
    if (!where.wants(work, one.name)) return;
    product_case<float> rows(where, one.shape);
    std::string implementation;
    rows.add_demi(role::ours);
    const float* const a = rows.a().data();
    const float* const b = rows.b().data();
    rows.add("OpenBLAS", role::peer, [&](float* c) { return openblas::sgemm(one.shape, a, b, c); });
    rows.add("oneDNN", role::peer, [&](float* c) {
        return onednn::matmul(one.shape, number::float32, a, b, c, implementation);
    });
    rows.add("Eigen", role::peer, [&](float* c) { return eigen::sgemm(one.shape, a, b, c); });
    rows.add_limit(limits::fma_peak(where.threads()));
    rows.measure(work, one.name, implementation,
                 {{.work = work,
                   .against = "best of OpenBLAS, oneDNN, Eigen",
                   .goal_mean = 1,
                   .goal_worst = 0.8},
                  of_peak(work, "FMA peak")});
}

void measure_bfloat16(session& where, const named_product& one) {
    const std::string work = "bf16 GEMM";
    if (!where.wants(work, one.name)) return;
    product_case<demi::bfloat16> rows(where, one.shape);
    std::string implementation;
    rows.add_demi(role::ours);
    rows.add("oneDNN", role::peer, [&](float* c) {
        return onednn::matmul(one.shape, number::bfloat16, rows.a().data(), rows.b().data(), c,
                              implementation);
    });
    rows.add_limit(limits::bfloat16_peak(where.threads()));
    rows.measure(
        work, one.name, implementation,
        {{.work = work, .against = "oneDNN", .goal_mean = 1}, of_peak(work, "bf16 dot peak")});
}

/// Widens factors by the best loop there is, on all threads, and multiplies them in float. Weights
/// that are kept are widened beforehand.
task expand_and_multiply(product_case<demi::float16>& rows, bool keeps_b, float* c) {
    const auto loops = hand::float_from_float16();
    const task multiply =
        openblas::sgemm(rows.shape(), rows.wide_a().data(), rows.wide_b().data(), c);
    if (loops.empty() || !multiply) return {};
    return [&rows, keeps_b, multiply, expand = loops.front().function] {
        const auto widen = [&](const array<demi::float16>& from, array<float>& to) {
            const auto* const source = reinterpret_cast<const std::uint16_t*>(from.data());
            share_out(rows.where().threads(), from.size(), [&](std::size_t begin, std::size_t end) {
                expand(source + begin, to.data() + begin, end - begin);
            });
        };
        widen(rows.a(), rows.wide_a());
        if (!keeps_b) widen(rows.b(), rows.wide_b());
        multiply();
    };
}

void measure_float16(session& where, const named_product& one) {
    const std::string work = "f16 GEMM";
    if (!where.wants(work, one.name)) return;
    product_case<demi::float16> rows(where, one.shape);
    rows.add_demi(role::ours);
    rows.add("expand, then OpenBLAS", role::peer,
             [&](float* c) { return expand_and_multiply(rows, false, c); });
    rows.add_demi_float();
    rows.add_limit(limits::fma_peak(where.threads()));
    rows.measure(
        work, one.name, {},
        {{.work = work, .against = "expand, then OpenBLAS", .goal_mean = 1},
         {.work = work, .against = "demi's own f32", .names = {"demi f32"}, .goal_mean = 0.95},
         of_peak(work, "FMA peak")});
}

template <class T>
task multiply_packed(product_case<T>& rows, float* c) {
    const auto weights = std::make_shared<demi::packed_matrix<T>>(
        rows.where().backend(), rows.right(), demi::operand_side::right);
    const demi::matrix_view<float> result(c, rows.shape().m, rows.shape().n);
    return [&rows, weights, result] {
        demi::gemm(rows.where().backend(), rows.left(), *weights, result);
    };
}

/// Weights that stay the same over many products: everybody has brought them into a form of choice.
template <class T>
void measure_packed(session& where, const named_product& one, const std::string& format) {
    const bool square = one.shape.m == one.shape.n && one.shape.n == one.shape.k;
    const std::string work = format + " GEMM, packed, " + (square ? "square" : "skinny");
    if (!where.wants(work, one.name)) return;
    product_case<T> rows(where, one.shape);
    std::string implementation;
    rows.add("demi", role::ours, [&](float* c) { return multiply_packed(rows, c); });
    rows.add_demi(role::note, "demi, nothing packed");
    if constexpr (std::is_same_v<T, demi::float16>) {
        rows.add("OpenBLAS, weights expanded before", role::peer,
                 [&](float* c) { return expand_and_multiply(rows, true, c); });
    } else {
        const number kind = std::is_same_v<T, float> ? number::float32 : number::bfloat16;
        rows.add("oneDNN packed", role::peer, [&](float* c) {
            return onednn::matmul_packed(one.shape, kind, rows.a().data(), rows.b().data(), c,
                                         implementation);
        });
    }
    const bool pairs = std::is_same_v<T, demi::bfloat16>;
    rows.add_limit(pairs ? limits::bfloat16_peak(where.threads())
                         : limits::fma_peak(where.threads()));
    criterion peak = of_peak(work, pairs ? "bf16 dot peak" : "FMA peak");
    peak.goal_mean = square ? 0.9 : 0;
    rows.measure(work, one.name, implementation,
                 {{.work = work, .against = "best packed peer", .goal_mean = square ? 0.0 : 1.0},
                  peak,
                  {.work = work, .against = "nothing packed", .names = {"demi, nothing packed"}}});
}

}  // namespace

void measure_products(session& where) {
    for (const named_product& one : shapes(where.quick())) measure_float(where, one);
    for (const named_product& one : shapes(where.quick())) measure_bfloat16(where, one);
    for (const named_product& one : shapes(where.quick())) measure_float16(where, one);
    for (const named_product& one : shapes(where.quick())) {
        if (one.shape.transpose_a || one.shape.transpose_b) continue;
        measure_packed<float>(where, one, "f32");
        measure_packed<demi::bfloat16>(where, one, "bf16");
        measure_packed<demi::float16>(where, one, "f16");
    }
}

}  // namespace bench
