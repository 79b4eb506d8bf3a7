// SPDX-License-Identifier: MIT
/// Chooses the kernel for a product and launches it.
#pragma once

#include <demi/cuda/context.hpp>
#include <demi/cuda/detail/gemm_arithmetic.cuh>
#include <demi/cuda/detail/gemm_mma.cuh>
#include <demi/cuda/detail/gemm_plan.hpp>
#include <demi/cuda/detail/gemm_product.cuh>
#include <demi/cuda/detail/gemm_simt.cuh>
#include <demi/cuda/gemm_tile.hpp>
#include <demi/cuda/launch.cuh>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

/// Adds the parts of the depth, always in the same order, and finishes the sums.
template <class Product>
struct parts_pass {
    static constexpr int threads = 256;
    static constexpr int resident = 1;

    Product product;

    __device__ void run() const {
        typename Product::worker worker = product.begin_worker();
        add_up(blockIdx.x * std::size_t{threads} + threadIdx.x, worker);
        Product::end_worker(worker);
    }

private:
    __device__ void add_up(std::size_t column, typename Product::worker& worker) const {
        if (column >= product.columns) return;
        const std::size_t size = product.rows * product.columns;
        const float* const parts = product.split.partials + blockIdx.z * size * product.split.parts;
        auto* const to = product.result_of(blockIdx.z);
        for (std::size_t row = blockIdx.y; row < product.rows; row += gridDim.y) {
            float value = 0;
#pragma unroll 4
            for (unsigned i = 0; i < product.split.parts; ++i) {
                value += parts[i * size + row * product.columns + column];
            }
            product.finish(value, row, column, to, worker);
        }
    }
};

inline constexpr std::size_t most_blocks_y = 65535;

/// A block for every row; where each block has a worker to end, no more than run at a time.
template <class Product>
dim3 parts_blocks(const Product& product, const cuda_device& device) {
    const std::size_t columns = divided_up(product.columns, parts_pass<Product>::threads);
    std::size_t rows = std::min(product.rows, most_blocks_y);
    if constexpr (Product::has_worker) {
        const auto resident = 8 * static_cast<std::size_t>(device.multiprocessors);
        rows = std::min(rows, divided_up(resident, columns * product.count));
    }
    return {static_cast<unsigned>(columns), static_cast<unsigned>(rows), product.count};
}

/// Bytes of what can be read at once from every line of a matrix of a batch, 16 at most.
struct line_access {
    std::uintptr_t places = 0;  ///< the bits of all addresses and distances

    template <class T>
    void add(const T* data, std::size_t leading) {
        places |= reinterpret_cast<std::uintptr_t>(data) | leading * sizeof(T);
    }
    int bytes() const {
        int result = 16;
        while (places % static_cast<std::uintptr_t>(result) != 0) result /= 2;
        return result;
    }
};

struct product_access {
    int a = 0;
    int b = 0;
};

template <class Pass>
void launch_tiles(cuda_context& context, const Pass& pass, std::size_t rows, std::size_t columns,
                  std::size_t shared_bytes) {
    const auto kernel = gemm_kernel<Pass>;
    constexpr std::size_t without_asking = std::size_t{48} * 1024;
    if (shared_bytes > without_asking) {
        check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared_bytes)),
                   "cudaFuncSetAttribute");
    }
    const std::size_t tiles =
        divided_up(pass.product.rows, rows) * divided_up(pass.product.columns, columns);
    const dim3 blocks(static_cast<unsigned>(tiles), pass.product.split.parts, pass.product.count);
    launch("gemm", kernel, {blocks, Pass::threads, shared_bytes}, context.stream(), pass);
}

template <class Tile, bool Wide, class Product>
void launch_mma(cuda_context& context, const Product& product, const product_access& access) {
    const auto run = [&](auto along_depth_a, auto along_depth_b) {
        launch_tiles(context,
                     mma_pass<Tile, Wide, along_depth_a.value, along_depth_b.value, Product>{
                         product, access.a, access.b},
                     Tile::rows, Tile::columns, Tile::shared_bytes);
    };
    constexpr std::true_type yes;
    [[maybe_unused]] constexpr std::false_type no;
    if constexpr (!arithmetic_of<Product>::takes_any_layout) {
        run(yes, yes);
    } else if (product.a.along_depth) {
        product.b.along_depth ? run(yes, yes) : run(yes, no);
    } else {
        product.b.along_depth ? run(no, yes) : run(no, no);
    }
}

/// Whether the device has these tensor cores, and the program device code for them.
template <class Pass>
bool can_run_mma(const cuda_device& device, int compute_capability) {
    if (device.compute_capability < compute_capability) return false;
    static const int compiled = [] {
        cudaFuncAttributes attributes{};
        check_cuda(cudaFuncGetAttributes(&attributes, gemm_kernel<Pass>), "cudaFuncGetAttributes");
        return attributes.ptxVersion;
    }();
    return compiled >= compute_capability;
}

/// Sums of parts may take that much where memory comes from a pool; elsewhere, where taking memory
/// waits for the device, they stay within the workspace.
inline constexpr std::size_t most_partial_bytes = std::size_t{64} << 20;

inline gemm_limits limits_of(const cuda_device& device) {
    return {static_cast<std::size_t>(device.multiprocessors), device.shared_memory_per_block,
            device.has_memory_pools ? most_partial_bytes : cuda_context::workspace_size};
}

/// Plans the product, launches it by `launch_one(product, tile)`, and adds up the parts of its
/// depth.
template <class Product, class LaunchOne>
void launch_planned(cuda_context& context, Product product, std::span<const tile_size> tiles,
                    const LaunchOne& launch_one) {
    const gemm_plan plan = plan_gemm({product.rows, product.columns, product.depth, product.count},
                                     tiles, limits_of(context.device()));
    if (plan.parts == 1) return launch_one(product, plan.tile);

    const std::size_t bytes =
        sizeof(float) * plan.parts * product.count * product.rows * product.columns;
    const bool is_small = bytes <= cuda_context::workspace_size;
    const cuda_block memory(context.memory(), context.stream(), is_small ? 0 : bytes);
    void* const partials = is_small ? context.workspace() : memory.data();
    product.split = {plan.parts, plan.part_depth, static_cast<float*>(partials)};
    launch_one(product, plan.tile);
    launch("gemm", gemm_kernel<parts_pass<Product>>,
           {parts_blocks(product, context.device()), parts_pass<Product>::threads},
           context.stream(), parts_pass<Product>{product});
}

template <bool Wide, class Product, class... Tiles>
void launch_on_tensor_cores(cuda_context& context, const Product& product,
                            const product_access& access, tile_choice<Tiles...>) {
    constexpr std::array<tile_size, sizeof...(Tiles)> tiles{
        tile_size{Tiles::rows, Tiles::columns, Tiles::depth * 2 / sizeof(typename Product::left),
                  Tiles::shared_bytes}...};
    launch_planned(context, product, tiles, [&](const Product& planned, std::size_t chosen) {
        std::size_t i = 0;
        ((i++ == chosen ? launch_mma<Tiles, Wide>(context, planned, access) : void()), ...);
    });
}

template <class Product>
void launch_simt(cuda_context& context, const Product& product) {
    using narrow_pass = simt_pass<1, Product>;
    using wide_pass = simt_pass<2, Product>;
    const auto launch_narrow = [&](const Product& planned) {
        launch_tiles(context, narrow_pass{planned}, narrow_pass::size, narrow_pass::size, 0);
    };
    // Registers do not suffice for large tiles in double; and what old devices only need is not
    // worth another kernel.
    if constexpr (std::same_as<typename Product::sum, double> ||
                  arithmetic_of<Product>::takes_any_layout) {
        launch_narrow(product);
    } else {
        constexpr std::array<tile_size, 2> tiles{
            tile_size{wide_pass::size, wide_pass::size, wide_pass::depth, 0},
            tile_size{narrow_pass::size, narrow_pass::size, narrow_pass::depth, 0}};
        launch_planned(context, product, tiles, [&](const Product& planned, std::size_t chosen) {
            if (chosen != 0) return launch_narrow(planned);
            launch_tiles(context, wide_pass{planned}, wide_pass::size, wide_pass::size, 0);
        });
    }
}

/// One launch, or two when the depth is divided; no synchronisation.
template <class Product>
void launch_product(cuda_context& context, const Product& product, const product_access& access) {
    if constexpr (multiplies_on_tensor_cores<Product>) {
        using arithmetic = arithmetic_of<Product>;
        constexpr int capability = arithmetic::compute_capability;
        using shapes = gemm_tile<capability, typename arithmetic::tile_format>;
        const bool lie_well =
            arithmetic::takes_any_layout || (product.a.along_depth && product.b.along_depth);
        if (lie_well && can_run_mma<parts_pass<Product>>(context.device(), capability)) {
            if (access.a == 16 && access.b == 16) {
                return launch_on_tensor_cores<true>(context, product, access,
                                                    typename shapes::tiles{});
            }
            return launch_on_tensor_cores<false>(context, product, access,
                                                 typename shapes::narrow_tiles{});
        }
    }
    launch_simt(context, product);
}

}  // namespace demi::inline DEMI_ABI::detail
