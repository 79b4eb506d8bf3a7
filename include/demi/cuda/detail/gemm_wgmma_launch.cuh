// SPDX-License-Identifier: MIT
/// Launches products by `wgmma`, where device, program and operands allow it.
#pragma once

#include <demi/cuda/detail/gemm_launch.cuh>
#include <demi/cuda/detail/gemm_wgmma.cuh>
#include <demi/cuda/detail/tensor_map.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

/// Whether a product can go to `wgmma`: where a policy asks for another arithmetic, it has that
/// one.
template <class Product>
inline constexpr bool multiplies_by_wgmma =
    multiplies_on_tensor_cores<Product>&& Product::math == product_math::usual;

/// The lines of an operand of a product, `across` of which lie along the depth, or else `depth`
/// across it.
template <class T>
tensor_lines lines_of(const gemm_operand<T>& operand, std::size_t across, std::size_t depth,
                      unsigned count, std::ptrdiff_t distance) {
    return {operand.data,
            sizeof(T),
            operand.along_depth ? depth : across,
            operand.along_depth ? across : depth,
            operand.leading,
            count,
            distance};
}

/// A product whose operands the copy engine can read.
template <class Product>
struct wgmma_operands {
    tensor_lines a;
    tensor_lines b;

    explicit wgmma_operands(const Product& product)
        : a(lines_of(product.a, product.rows, product.depth, product.count, product.walk.a)),
          b(lines_of(product.b, product.columns, product.depth, product.count, product.walk.b)) {}

    static bool fit(const Product& product, const product_access& access) {
        const wgmma_operands operands(product);
        const bool lie_well = arithmetic_of<Product>::takes_any_layout ||
                              (product.a.along_depth && product.b.along_depth);
        return access.a == 16 && access.b == 16 && lie_well && product.walk.places == nullptr &&
               operands.a.fit() && operands.b.fit();
    }
};

/// Whether the device is the one, and the program has code for it.
template <class Pass>
bool can_run_wgmma(const cuda_device& device) {
    if (device.compute_capability != 90) return false;
    static const bool compiled = [] {
        cudaFuncAttributes attributes{};
        check_cuda(cudaFuncGetAttributes(&attributes, wgmma_kernel<Pass>), "cudaFuncGetAttributes");
        return attributes.sharedSizeBytes > 0;
    }();
    return compiled;
}

template <class Tile, class Product>
void launch_wgmma_tile(cuda_context& context, const Product& product) {
    using pass = wgmma_pass<Tile, Product>;
    constexpr auto depth = Tile::depth_bytes / sizeof(typename Product::left);
    const wgmma_operands<Product> operands(product);
    const auto box_lines = [](bool along_depth, int across) {
        return along_depth ? static_cast<std::uint32_t>(across) : std::uint32_t{depth};
    };
    const std::size_t tiles =
        divided_up(product.rows, Tile::rows) * divided_up(product.columns, Tile::columns);
    const std::size_t parts = tiles * product.split.parts * product.count;
    const auto blocks = static_cast<unsigned>(
        std::min(parts, static_cast<std::size_t>(context.device().multiprocessors)));
    const auto kernel = wgmma_kernel<pass>;
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(Tile::shared_bytes)),
               "cudaFuncSetAttribute");
    launch("gemm", kernel, {blocks, Tile::threads, Tile::shared_bytes}, context.stream(),
           pass{make_tensor_map(operands.a, box_lines(product.a.along_depth, Tile::rows)),
                make_tensor_map(operands.b, box_lines(product.b.along_depth, Tile::columns)),
                product, static_cast<unsigned>(tiles), static_cast<unsigned>(parts)});
}

template <class Product, class First, class... Rest>
bool launch_wgmma_choice(cuda_context& context, const Product& product,
                         const product_access& access, tile_choice<First, Rest...>) {
    const double most_parts = static_cast<double>(divided_up(product.rows, 64)) *
                              static_cast<double>(divided_up(product.columns, 64)) * product.count;
    if (most_parts > 0x1p31 || !wgmma_operands<Product>::fit(product, access) ||
        !can_run_wgmma<wgmma_pass<First, Product>>(context.device())) {
        return false;
    }
    constexpr auto size_of = [](auto tile) {
        using type = decltype(tile);
        return tile_size{type::rows, type::columns,
                         type::depth_bytes / sizeof(typename Product::left), type::shared_bytes,
                         true};
    };
    constexpr std::array<tile_size, 1 + sizeof...(Rest)> tiles{size_of(First{}),
                                                               size_of(Rest{})...};
    launch_planned(context, product, tiles, [&](const Product& planned, std::size_t chosen) {
        std::size_t i = 1;
        if (chosen == 0) launch_wgmma_tile<First>(context, planned);
        ((i++ == chosen ? launch_wgmma_tile<Rest>(context, planned) : void()), ...);
    });
    return true;
}

/// One launch, or two when the depth is divided, or none and false; no synchronisation.
template <class Product>
bool launch_wgmma(cuda_context& context, const Product& product, const product_access& access) {
    using tiles = typename gemm_tile<90, typename arithmetic_of<Product>::tile_format>::tiles;
    return launch_wgmma_choice(context, product, access, tiles{});
}

}  // namespace demi::inline DEMI_ABI::detail
