// SPDX-License-Identifier: MIT
/// Runs one product and prints what its kernels may move and do; see expected_counts.hpp.
#include <demi/cuda/policy_backend.cuh>
#include <demi/kernels/gemm.hpp>
#include <demi/kernels/gemm_batched.hpp>
#include <demi/kernels/watching_epilogue.hpp>

#include <cuda/expected_counts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

namespace {

using demi::layout;
using half = demi::float16;
using demi::detail::product_math;

struct size {
    std::size_t m, n, k;
};

/// Every tile reads its operands once, in whole sectors, and writes its part of the result once.
template <class T>
void expect_tile_traffic(const size& s, std::size_t rows, std::size_t columns) {
    const std::uint64_t loads = sizeof(T) * s.k * (s.m * (s.n / columns) + s.n * (s.m / rows));
    const std::uint64_t stores = sizeof(T) * s.m * s.n;
    expect("mma_pass", "global_load_bytes", loads);
    expect("mma_pass", "global_load_sectors", loads / 32);
    expect("mma_pass", "global_store_bytes", stores);
    expect("mma_pass", "global_store_sectors", stores / 32);
}

/// An instruction multiplies 16 rows by 8 columns, with 32 bytes of each.
template <class T>
void expect_multiplications(const size& s) {
    expect("kernel", "mma", s.m * s.n * s.k / (16 * 8 * 32 / sizeof(T)));
}

/// The matrices of a product, `offset` elements behind a boundary of 256 bytes.
template <class T>
class matrices {
public:
    matrices(const demi::cuda_backend& where, const size& s, layout order_a, layout order_b,
             std::size_t offset = 0)
        : memory_a_(where.make_buffer<T>(s.m * s.k + offset)),
          memory_b_(where.make_buffer<T>(s.k * s.n + offset)),
          memory_c_(where.make_buffer<T>(s.m * s.n + offset)),
          a(memory_a_.data() + offset, s.m, s.k, order_a),
          b(memory_b_.data() + offset, s.k, s.n, order_b),
          c(memory_c_.data() + offset, s.m, s.n) {}

private:
    demi::cuda_buffer<T> memory_a_, memory_b_, memory_c_;

public:
    demi::matrix_view<const T> a, b;
    demi::matrix_view<T> c;
};

/// Whole tiles of one shape, in all pairs of layouts.
template <class Tile, class T = half, product_math Math = product_math::usual>
void whole_tiles(const demi::cuda_backend& where) {
    const size s{2 * Tile::rows, 3 * Tile::columns, 5 * Tile::depth * 2 / sizeof(T)};
    for (const layout order_a : {layout::row_major, layout::column_major}) {
        for (const layout order_b : {layout::row_major, layout::column_major}) {
            const matrices<T> of(where, s, order_a, order_b);
            auto product = demi::detail::make_product<Math>(1, of.a, of.b, 0, of.c,
                                                            demi::no_epilogue{}, false);
            product.has_wide_lines = true;
            demi::detail::launch_mma<Tile, true>(where.context(), product, {16, 16});
        }
    }
    const size all{4 * s.m, s.n, s.k};
    expect("mma_pass", "launches", 4);
    expect_multiplications<T>(all);
    expect_tile_traffic<T>(all, Tile::rows, Tile::columns);
    expect_no_hidden_cost();
}

/// Whole tiles of operands that allow accesses of `Bytes` only.
template <int Bytes, class T = half, class Backend = demi::cuda_backend>
void narrow(const demi::cuda_backend& backend) {
    const Backend where(backend);
    const size s{256, 192, 320 / sizeof(T)};
    for (const layout order_a : {layout::row_major, layout::column_major}) {
        for (const layout order_b : {layout::row_major, layout::column_major}) {
            const matrices<T> of(where, s, order_a, order_b, Bytes / sizeof(T));
            demi::gemm(where, of.a, of.b, of.c);
        }
    }
    expect_multiplications<T>({4 * s.m, s.n, s.k});
    expect("mma_pass", "global_load_bytes",
           4 * sizeof(T) * s.k * (s.m * (s.n / 64) + s.n * (s.m / 128)));
    expect_no_hidden_cost();
}

/// Through the front door, with an epilogue that reads and writes.
void layer(const demi::cuda_backend& where) {
    const size s{256, 512, 128};
    const matrices<half> of(where, s, layout::row_major, layout::column_major);
    const matrices<half> kept(where, s, layout::row_major, layout::row_major);
    const auto offsets = where.make_buffer<float>(s.n);
    demi::gemm(
        where, of.a, of.b, of.c, {},
        demi::then(demi::bias<float>(offsets.data()), demi::store<half>(kept.c), demi::gelu{}));
    expect("mma_pass", "launches", 1);
    expect_multiplications<half>(s);
    expect("mma_pass", "global_store_bytes", 2 * 2 * s.m * s.n);
    expect("mma_pass", "global_store_sectors", 2 * 2 * s.m * s.n / 32);
    expect_no_hidden_cost();
}

void long_depth(const demi::cuda_backend& where) {
    const size s{64, 64, 8192};
    const matrices<half> of(where, s, layout::row_major, layout::column_major);
    demi::gemm(where, of.a, of.b, of.c);
    expect("mma_pass", "launches", 1);
    expect("mma_pass", "blocks", 8, 32);
    expect("parts_pass", "launches", 1);
    expect_multiplications<half>(s);
    expect("mma_pass", "global_load_bytes", 2 * s.k * (s.m + s.n));
    expect_no_hidden_cost();
}

/// A product of numbers near 1, whose results are watched.
void multiply_watched(const demi::cuda_backend& where, const size& s) {
    const matrices<half> of(where, s, layout::row_major, layout::column_major);
    auto numbers = where.make_buffer<std::uint32_t>(2);
    const cudaStream_t stream = where.stream().get();
    constexpr int near_one = 0x3c;  // in both bytes of a half
    cudaMemsetAsync(const_cast<half*>(of.a.data()), near_one, 2 * s.m * s.k, stream);
    cudaMemsetAsync(const_cast<half*>(of.b.data()), near_one, 2 * s.k * s.n, stream);
    cudaMemsetAsync(numbers.data(), 0, 8, stream);
    demi::gemm(where, of.a, of.b, of.c, {},
               demi::scale{0.5f} | demi::raise_amax(reinterpret_cast<float*>(numbers.data())) |
                   demi::flag_non_finite<half>(numbers.data() + 1));
}

/// One atomic for each warp, and no more traffic than the plain product has.
void watched(const demi::cuda_backend& where) {
    const size s{256, 256, 128};
    multiply_watched(where, s);
    expect_multiplications<half>(s);
    expect_tile_traffic<half>(s, 64, 64);
    expect_no_hidden_cost(s.m * s.n / (32 * 32));
}

/// The same for the warps that finish sums: two in each block, of which there are 8 for each
/// multiprocessor, or as many as rows.
void watched_parts(const demi::cuda_backend& where) {
    const size s{1024, 64, 1024};
    multiply_watched(where, s);
    const std::size_t blocks = 8 * std::size_t(where.context().device().multiprocessors);
    expect("mma_pass", "atomics", 0);
    expect("mma_pass", "global_load_bytes", 2 * s.k * (s.m + s.n * s.m / 64));
    expect("parts_pass", "launches", 1);
    expect("parts_pass", "global_store_bytes", 2 * s.m * s.n);
    expect_no_hidden_cost(2 * std::min(blocks, s.m));
}

void batch(const demi::cuda_backend& where) {
    const size s{6 * 64, 64, 64};
    const matrices<half> of(where, s, layout::row_major, layout::row_major);
    const auto part = [](auto whole) { return decltype(whole)(whole.data(), 64, whole.columns()); };
    demi::gemm_batched(where, demi::strided_matrices(part(of.a), 64 * s.k, 6),
                       demi::strided_matrices(of.b, 0, 6),
                       demi::strided_matrices(part(of.c), 64 * s.n, 6));
    expect("kernel", "launches", 1);
    expect_multiplications<half>(s);
    expect_tile_traffic<half>(s, 64, 64);
    expect_no_hidden_cost();
}

/// In float, in all pairs of layouts.
template <int Blocks>
void single_precision(const demi::cuda_backend& where) {
    const size s{256, 128, 48};
    for (const layout order_a : {layout::row_major, layout::column_major}) {
        for (const layout order_b : {layout::row_major, layout::column_major}) {
            const matrices<float> of(where, s, order_a, order_b);
            auto product =
                demi::detail::make_product(1, of.a, of.b, 0, of.c, demi::no_epilogue{}, false);
            product.has_wide_lines = true;
            using pass = demi::detail::simt_pass<Blocks, decltype(product)>;
            demi::detail::launch_tiles(where.context(), pass{product}, pass::size, pass::size, 0);
        }
    }
    const std::uint64_t edge = 64 * Blocks;
    const std::uint64_t loads = 4 * 4 * s.k * (s.m * (s.n / edge) + s.n * (s.m / edge));
    expect("simt_pass", "global_load_bytes", loads);
    expect("simt_pass", "global_load_sectors", loads / 32);
    expect("simt_pass", "global_store_sectors", 4 * 4 * s.m * s.n / 32);
    expect_no_hidden_cost();
}

using demi::mma_tile;
using tf32_backend = demi::cuda_backend_for<demi::tf32>;

const std::map<std::string, std::function<void(const demi::cuda_backend&)>> cases{
    {"gemm_256x128", whole_tiles<mma_tile<256, 128, 32, 64, 64, 3>>},
    {"gemm_128x128", whole_tiles<mma_tile<128, 128, 32, 64, 64, 4>>},
    {"gemm_64x64", whole_tiles<mma_tile<64, 64, 32, 32, 32, 4>>},
    {"gemm_8_bytes", narrow<8>},
    {"gemm_4_bytes", narrow<4>},
    {"gemm_2_bytes", narrow<2>},
    {"gemm_layer", layer},
    {"gemm_long_depth", long_depth},
    {"gemm_watched", watched},
    {"gemm_watched_parts", watched_parts},
    {"gemm_batch", batch},
    {"gemm_f32_64x64", single_precision<1>},
    {"gemm_f32_128x128", single_precision<2>},
    {"gemm_tf32_256x128",
     whole_tiles<mma_tile<256, 128, 32, 64, 64, 3>, float, product_math::tf32_factors>},
    {"gemm_tf32_128x128",
     whole_tiles<mma_tile<128, 128, 32, 64, 64, 4>, float, product_math::tf32_factors>},
    {"gemm_tf32_64x64",
     whole_tiles<mma_tile<64, 64, 32, 32, 32, 4>, float, product_math::tf32_factors>},
    {"gemm_tf32_8_bytes", narrow<8, float, tf32_backend>},
    {"gemm_tf32_4_bytes", narrow<4, float, tf32_backend>},
    {"gemm_f16_sums",
     whole_tiles<mma_tile<256, 128, 32, 64, 64, 3>, half, product_math::half_sums>},
};

}  // namespace

int main(int count, char* arguments[]) {
    const auto chosen = cases.find(count == 2 ? arguments[1] : "");
    if (chosen == cases.end()) {
        std::fprintf(stderr, "usage: cuda_gemm_counts <case>\n");
        for (const auto& known : cases) std::fprintf(stderr, "  %s\n", known.first.c_str());
        return 2;
    }
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    chosen->second(where);
    stream.synchronize();
}
