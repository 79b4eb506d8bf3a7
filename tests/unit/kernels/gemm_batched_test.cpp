// SPDX-License-Identifier: MIT
#include <demi/host/host_backend.hpp>
#include <demi/kernels/epilogue.hpp>
#include <demi/kernels/gemm_batched.hpp>

#include <cstddef>
#include <limits>
#include <memory_resource>
#include <span>
#include <string>
#include <support/backends.hpp>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/matrices.hpp>
#include <support/message_of.hpp>
#include <utility>
#include <vector>

namespace {

using namespace demi;

template <class T>
std::span<const T> constant(const std::vector<T>& values) {
    return values;
}

}  // namespace

TEMPLATE_TEST_CASE("a batch gives the bits of its single products, whatever their shapes", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where;
    matrix_rng rng(71);
    std::vector<padded_matrix<float>> as, bs, cs, expected;
    for (int i = 0; i < 20; ++i) {
        const std::size_t rows = random_size(rng, 0, 40), columns = random_size(rng, 1, 40);
        const std::size_t depth = random_size(rng, 0, 40);
        as.emplace_back(rows, depth, random_layout(rng), 1).fill(rng);
        bs.emplace_back(depth, columns, random_layout(rng), 1).fill(rng);
        cs.emplace_back(rows, columns, random_layout(rng), 1).fill(rng);
    }
    expected = cs;
    const gemm_options options{.alpha = 2, .beta = 0.5f};
    std::vector<matrix_view<const float>> a, b;
    std::vector<matrix_view<float>> c;
    for (std::size_t i = 0; i < cs.size(); ++i) {
        a.push_back(std::as_const(as[i]).view());
        b.push_back(std::as_const(bs[i]).view());
        c.push_back(cs[i].view());
        gemm(where, a[i], b[i], expected[i].view(), options, relu{});
    }
    gemm_batched(where, constant(a), constant(b), constant(c), options, relu{});
    for (std::size_t i = 0; i < cs.size(); ++i) {
        CHECK(same_bits(cs[i].memory(), expected[i].memory()));
    }
}

TEMPLATE_TEST_CASE("a strided batch may use one operand for all of its products", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where;
    const std::vector<bfloat16> x{bfloat16(1.0f), bfloat16(2.0f), bfloat16(3.0f)};
    const std::vector<bfloat16> weight{bfloat16(2.0f), bfloat16(-1.0f)};
    std::vector<float> y(9, 7.0f);
    gemm_batched(where, strided_matrices(matrix_view<const bfloat16>(x.data(), 1, 1), 1, 3),
                 strided_matrices(matrix_view<const bfloat16>(weight.data(), 1, 2), 0, 3),
                 strided_matrices(matrix_view<float>(y.data(), 1, 2), 3, 3));
    CHECK(y == std::vector<float>{2, -1, 7, 4, -2, 7, 6, -3, 7});
}

TEST_CASE("a batch has the same bits for any number of threads and instruction set of its calls") {
    matrix_rng rng(73);
    std::vector<float> a(7 * 40 * 30), b(7 * 30 * 50);
    for (float& value : a) value = static_cast<float>(rng() % 1000) * 0x1p-9f - 1;
    for (float& value : b) value = static_cast<float>(rng() % 1000) * 0x1p-9f - 1;
    for (const host_isa isa : available_isas()) {
        std::vector<std::vector<float>> results;
        for (const std::size_t threads : {1u, 2u, 3u, 16u}) {
            const host_backend where(
                {.threads = threads, .executor = make_thread_executor(threads), .isa = isa});
            std::vector<float> c(7 * 40 * 50);
            gemm_batched(where,
                         strided_matrices(matrix_view<const float>(a.data(), 40, 30), 1200, 7),
                         strided_matrices(matrix_view<const float>(b.data(), 30, 50), 1500, 7),
                         strided_matrices(matrix_view<float>(c.data(), 40, 50), 2000, 7));
            results.push_back(c);
            CHECK(same_bits(results.back(), results.front()));
        }
    }
}

TEMPLATE_TEST_CASE("a batch of empty products and an empty batch are fine", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where;
    std::vector<float> c(4, 2.0f);
    const matrix_view<const float> none(nullptr, 1, 0);
    gemm_batched(where, strided_matrices(none, 0, 4), strided_matrices(transposed(none), 0, 4),
                 strided_matrices(matrix_view<float>(c.data(), 1, 1), 1, 4), {.beta = 3});
    CHECK(c == std::vector<float>(4, 6.0f));
    gemm_batched(where, strided_matrices(none, 0, 0), strided_matrices(transposed(none), 0, 0),
                 strided_matrices(matrix_view<float>(c.data(), 1, 1), 1, 0));
    CHECK(c == std::vector<float>(4, 6.0f));
}

TEMPLATE_TEST_CASE("a batch is refused as a whole before anything is written", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where;
    const std::vector<float> memory(16, 1.0f);
    std::vector<float> out(16, 7.0f);
    const auto view = [&](std::size_t rows, std::size_t columns) {
        return matrix_view<const float>(memory.data(), rows, columns);
    };
    const std::vector<matrix_view<const float>> a{view(2, 2), view(2, 3)},
        b{view(2, 2), view(2, 2)};
    const std::vector<matrix_view<float>> c{{out.data(), 2, 2}, {out.data() + 4, 2, 2}};
    const auto refusal = [&](const auto& as, const auto& bs, const auto& cs,
                             const gemm_options& options = {}) {
        return message_of<invalid_argument>([&] { gemm_batched(where, as, bs, cs, options); });
    };
    CHECK(mentions(refusal(constant(a), constant(b), constant(c)), {"a is 2 x 3", "3 rows"}));
    CHECK(mentions(refusal(constant(a).first(1), constant(b), constant(c)),
                   {"gemm_batched: 1 matrices a, expected 2"}));
    CHECK(mentions(refusal(constant(b), constant(b).first(1), constant(c)),
                   {"gemm_batched: 1 matrices b, expected 2"}));
    CHECK(mentions(refusal(constant(b), constant(b), constant(c),
                           {.alpha = std::numeric_limits<float>::infinity()}),
                   {"alpha"}));
    const strided_matrices<const float> same(view(2, 2), 0, 3);
    CHECK(
        mentions(refusal(same, same, strided_matrices(matrix_view<float>(out.data(), 2, 2), 3, 3)),
                 {"2 x 2 are only 3 elements apart"}));
    CHECK(out == std::vector<float>(16, 7.0f));
}

TEST_CASE("a batch without memory for its workspace is out_of_memory") {
    const host_backend where({.threads = 1, .memory = std::pmr::null_memory_resource()});
    const std::vector<float> one(1, 1.0f);
    std::vector<float> c(2);
    const strided_matrices<const float> ones(matrix_view<const float>(one.data(), 1, 1), 0, 2);
    CHECK_THROWS_AS(
        gemm_batched(where, ones, ones, strided_matrices(matrix_view<float>(c.data(), 1, 1), 1, 2)),
        out_of_memory);
}
