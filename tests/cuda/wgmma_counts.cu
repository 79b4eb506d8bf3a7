// SPDX-License-Identifier: MIT
/// As gemm_counts.cu, for products by `wgmma`.
#include <demi/cuda/cuda_backend.cuh>
#include <demi/kernels/gemm.hpp>
#include <demi/kernels/watching_epilogue.hpp>

#include <cuda/expected_counts.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

namespace {

using demi::layout;
using half = demi::float16;

struct size {
    std::size_t m, n, k;
};

/// Every tile reads its operands once, in whole sectors, and multiplies nothing beyond them. Each
/// of four warps counts an instruction for 64 rows.
template <class Tile>
void expect_tiles(const size& s, std::size_t value_bytes) {
    const std::uint64_t loads =
        value_bytes * s.k * (s.m * (s.n / Tile::columns) + s.n * (s.m / Tile::rows));
    expect("wgmma_pass", "global_load_bytes", loads);
    expect("wgmma_pass", "global_load_sectors", loads / 32);
    expect("kernel", "mma", 4 * s.m * s.n * s.k / (64 * Tile::group_columns * 32 / value_bytes));
    expect("kernel", "mma_flops", 2 * s.m * s.n * s.k);
}

void expect_stores(std::uint64_t bytes) {
    expect("wgmma_pass", "global_store_bytes", bytes);
    expect("wgmma_pass", "global_store_sectors", bytes / 32);
}

template <class T, class Result = half>
struct matrices {
    matrices(const demi::cuda_backend& where, const size& s, layout order_a, layout order_b)
        : memory_a(where.make_buffer<T>(s.m * s.k)),
          memory_b(where.make_buffer<T>(s.k * s.n)),
          memory_c(where.make_buffer<Result>(s.m * s.n)),
          a(memory_a.data(), s.m, s.k, order_a),
          b(memory_b.data(), s.k, s.n, order_b),
          c(memory_c.data(), s.m, s.n) {}

    demi::cuda_buffer<T> memory_a, memory_b;
    demi::cuda_buffer<Result> memory_c;
    demi::matrix_view<const T> a, b;
    demi::matrix_view<Result> c;
};

template <class Tile, class Matrices>
void multiply_by(const demi::cuda_backend& where, const Matrices& of) {
    auto product = demi::detail::make_product(1, of.a, of.b, 0, of.c, demi::no_epilogue{}, false);
    product.has_wide_lines = true;
    demi::detail::launch_wgmma_tile<Tile>(where.context(), product);
}

/// Whole tiles of one shape, in all pairs of layouts.
template <class Tile>
void whole_tiles(const demi::cuda_backend& where) {
    const size s{2 * Tile::rows, 2 * Tile::columns, 5 * 64};
    for (const layout order_a : {layout::row_major, layout::column_major}) {
        for (const layout order_b : {layout::row_major, layout::column_major}) {
            multiply_by<Tile>(where, matrices<half>(where, s, order_a, order_b));
        }
    }
    expect("wgmma_pass", "launches", 4);
    expect_tiles<Tile>({4 * s.m, s.n, s.k}, sizeof(half));
    expect_stores(2 * 4 * s.m * s.n);
    expect_no_hidden_cost();
}

template <class Tile>
void whole_tiles_of_8_bits(const demi::cuda_backend& where) {
    const size s{2 * Tile::rows, 2 * Tile::columns, 5 * 128};
    const matrices<demi::float8_e4m3> of(where, s, layout::row_major, layout::column_major);
    multiply_by<Tile>(where, of);
    expect("wgmma_pass", "launches", 1);
    expect_tiles<Tile>(s, 1);
    expect_stores(2 * s.m * s.n);
    expect_no_hidden_cost();
}

/// Through the front door, with an epilogue that reads and writes.
void layer(const demi::cuda_backend& where) {
    const size s{64 * 8, 128 * 8, 128};
    const matrices<half> of(where, s, layout::row_major, layout::column_major);
    const matrices<half> kept(where, s, layout::row_major, layout::row_major);
    const auto offsets = where.make_buffer<float>(s.n);
    demi::gemm(
        where, of.a, of.b, of.c, {},
        demi::then(demi::bias<float>(offsets.data()), demi::store<half>(kept.c), demi::gelu{}));
    expect("kernel", "launches", 1);
    expect("kernel", "mma_flops", 2 * s.m * s.n * s.k);
    expect_stores(2 * 2 * s.m * s.n);
    expect_no_hidden_cost();
}

/// More tiles than blocks: one atomic for each warp that multiplies.
void watched(const demi::cuda_backend& where) {
    const size s{64 * 16, 128 * 16, 64};
    matrices<half> of(where, s, layout::row_major, layout::column_major);
    auto amax = where.make_buffer<float>(1);
    constexpr int near_one = 0x3c;  // in both bytes of a half
    const cudaStream_t stream = where.stream().get();
    cudaMemsetAsync(of.memory_a.data(), near_one, 2 * s.m * s.k, stream);
    cudaMemsetAsync(of.memory_b.data(), near_one, 2 * s.k * s.n, stream);
    cudaMemsetAsync(amax.data(), 0, sizeof(float), stream);
    auto product =
        demi::detail::make_product(1, of.a, of.b, 0, of.c, demi::raise_amax(amax.data()), false);
    product.has_wide_lines = true;
    demi::detail::launch_wgmma_tile<demi::wgmma_tile<64, 128, 8>>(where.context(), product);
    expect("kernel", "launches", 1);
    expect_stores(2 * s.m * s.n);
    expect_no_hidden_cost(8 * std::uint64_t(where.context().device().multiprocessors));
}

/// Parts of a long depth, and more of them than blocks.
void long_depth(const demi::cuda_backend& where) {
    const size s{64, 128, 8192};
    const matrices<half> of(where, s, layout::row_major, layout::column_major);
    demi::gemm(where, of.a, of.b, of.c);
    expect("wgmma_pass", "launches", 1);
    expect("wgmma_pass", "blocks", 8, 32);
    expect("parts_pass", "launches", 1);
    expect_tiles<demi::wgmma_tile<64, 128, 8>>(s, sizeof(half));
    expect_no_hidden_cost();
}

const std::map<std::string, std::function<void(const demi::cuda_backend&)>> cases{
    {"wgmma_128x256", whole_tiles<demi::wgmma_tile<128, 256, 4>>},
    {"wgmma_128x128", whole_tiles<demi::wgmma_tile<128, 128, 6>>},
    {"wgmma_64x128", whole_tiles<demi::wgmma_tile<64, 128, 8>>},
    {"wgmma_8_bits", whole_tiles_of_8_bits<demi::wgmma_tile<128, 128, 6>>},
    {"wgmma_layer", layer},
    {"wgmma_watched", watched},
    {"wgmma_long_depth", long_depth}};

}  // namespace

int main(int count, char* arguments[]) {
    const auto chosen = count == 2 ? cases.find(arguments[1]) : cases.end();
    if (chosen == cases.end()) {
        std::fprintf(stderr, "usage: cuda_wgmma_counts <case>\n");
        return 2;
    }
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    chosen->second(where);
    stream.synchronize();
}
