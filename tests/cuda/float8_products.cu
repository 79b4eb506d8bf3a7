// SPDX-License-Identifier: MIT
/// Products of 8-bit matrices on tensor cores of compute capability 8.9: fails for wrong ones, and
/// prints bounds of what was done like gemm_counts.cu.
#include <demi/cuda/cuda_backend.cuh>
#include <demi/kernels/gemm.hpp>

#include <cuda/device_matrix.hpp>
#include <cuda/expected_counts.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <support/matrices.hpp>

namespace {

using demi::layout;
using e4m3 = demi::float8_e4m3;
using e5m2 = demi::float8_e5m2;

std::size_t wrong_elements = 0;

/// A product whose operands lie along the depth.
template <class A, class B, class C, class Multiply>
void check(const demi::cuda_backend& where, const std::array<std::size_t, 3>& size, layout order,
           std::size_t alignment, matrix_rng& rng, const Multiply& multiply) {
    const auto [m, n, k] = size;
    device_matrix<A> a(where, m, k, layout::row_major, alignment);
    device_matrix<B> b(where, k, n, layout::column_major, alignment);
    device_matrix<C> c(where, m, n, order, std::max(alignment, sizeof(C)));
    a.fill(rng);
    b.fill(rng);
    multiply(a.constant(), b.constant(), c.view());
    const padded_matrix<C> found = c.result();
    const std::size_t wrong = count_wrong(1.0f, a.host(), b.host(), 0.0f, c.host(), found.view()) +
                              (found.padding_is_untouched() ? 0 : 1'000'000);
    if (wrong == 0) return;
    wrong_elements += wrong;
    std::fprintf(stderr, "%zu x %zu x %zu, alignment %zu: %zu wrong elements\n", m, n, k, alignment,
                 wrong);
}

/// Odd sizes, each with another alignment and layout of the result; one with a divided depth.
template <class A, class B, class C>
void odd_sizes(const demi::cuda_backend& where) {
    matrix_rng rng(7);
    const auto multiply = [&](auto a, auto b, auto c) { demi::gemm(where, a, b, c); };
    for (std::size_t i = 0; i < 10; ++i) {
        const auto any = [&] { return random_size(rng, 0, 65) * 2 + 1; };
        check<A, B, C>(where, {any(), any(), any()},
                       i % 2 == 0 ? layout::row_major : layout::column_major,
                       std::size_t{1} << i % 5, rng, multiply);
    }
    check<A, B, C>(where, {40, 24, 2049}, layout::row_major, 16, rng, multiply);
    expect("mma_pass", "launches", 11);
}

/// Products of whole tiles, whose operands allow accesses of so many bytes.
template <class Tile, bool Wide, int... Alignments>
void whole_tiles(const demi::cuda_backend& where) {
    const std::array<std::size_t, 3> size{2 * Tile::rows, 3 * Tile::columns, 10 * Tile::depth};
    const auto [m, n, k] = size;
    matrix_rng rng(8);
    for (const int alignment : {Alignments...}) {
        check<e4m3, e5m2, demi::float16>(
            where, size, layout::row_major, static_cast<std::size_t>(alignment), rng,
            [&](auto a, auto b, auto c) {
                auto product =
                    demi::detail::make_product(1, a, b, 0, c, demi::no_epilogue{}, false);
                product.has_wide_lines = alignment == 16;
                demi::detail::launch_mma<Tile, Wide>(where.context(), product,
                                                     {alignment, alignment});
            });
    }
    const std::size_t count = sizeof...(Alignments);
    expect("kernel", "launches", count);
    expect("kernel", "mma", count * m * n * k / (16 * 8 * 32));
    expect("kernel", "global_load_bytes",
           count * k * (m * (n / Tile::columns) + n * (m / Tile::rows)));
    expect("kernel", "global_store_bytes", count * 2 * m * n);
    expect("kernel", "bank_conflicts", 0);
    expect("kernel", "local_bytes", 0);
}

using demi::mma_tile;

const std::map<std::string, std::function<void(const demi::cuda_backend&)>> cases{
    {"float8_mixed", odd_sizes<e4m3, e5m2, demi::float16>},
    {"float8_e4m3", odd_sizes<e4m3, e4m3, float>},
    {"float8_e5m2", odd_sizes<e5m2, e5m2, float>},
    {"float8_128x128", whole_tiles<mma_tile<128, 128, 32, 64, 32, 4>, true, 16>},
    {"float8_64x64", whole_tiles<mma_tile<64, 64, 32, 32, 32, 4>, true, 16>},
    {"float8_narrow", whole_tiles<mma_tile<128, 64, 32, 32, 32, 4>, false, 8, 4, 1>},
};

}  // namespace

int main(int count, char* arguments[]) {
    const auto chosen = cases.find(count == 2 ? arguments[1] : "");
    if (chosen == cases.end()) {
        std::fprintf(stderr, "usage: cuda_float8_products <case>\n");
        return 2;
    }
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    chosen->second(where);
    stream.synchronize();
    return wrong_elements == 0 ? 0 : 1;
}
