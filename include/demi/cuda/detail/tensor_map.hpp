// SPDX-License-Identifier: MIT
/// Matrices as the copy engine of devices of compute capability 9.0 sees them.
#pragma once

#include <demi/cuda/error.hpp>

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI::detail {

/// Matrices at equal distances. The address and all distances in bytes are multiples of 16.
struct tensor_lines {
    const void* data;
    std::size_t value_bytes;  ///< 1 or 2
    std::size_t line_length;
    std::size_t lines;
    std::size_t line_distance;  ///< in values
    std::size_t count;
    std::ptrdiff_t distance;  ///< of matrices, in values

    /// Whether a map can describe them: coordinates have 32 bits, of boxes that hang over the edge
    /// too, and distances 40.
    bool fit() const {
        constexpr std::size_t most = (std::size_t{1} << 31) - 256;
        constexpr std::size_t most_bytes = std::size_t{1} << 40;
        return line_length > 0 && lines > 0 && line_length <= most && lines <= most &&
               line_distance * value_bytes < most_bytes && distance >= 0 &&
               static_cast<std::size_t>(distance) * value_bytes < most_bytes;
    }
};

using encode_function = decltype(&cuTensorMapEncodeTiled);

/// The driver's function, without linking the driver. Throws `cuda_error` when it has none.
inline encode_function find_encode_function() {
    constexpr const char* name = "cuTensorMapEncodeTiled";
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    check_cuda(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found),
               "cudaGetDriverEntryPointByVersion");
#else
    check_cuda(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found),
               "cudaGetDriverEntryPoint");
#endif
    if (found != cudaDriverEntryPointSuccess || function == nullptr) {
        check_cuda(cudaErrorSymbolNotFound, name);
    }
    return reinterpret_cast<encode_function>(function);
}

/// A map for copies of boxes of `box_lines` pieces of lines, of 128 bytes each, to shared memory,
/// where each 16 bytes of a piece change places by the number of the piece modulo 8, as tensor
/// cores expect it. What lies outside of the matrix becomes zero. Throws `cuda_error`.
inline CUtensorMap make_tensor_map(const tensor_lines& from, std::uint32_t box_lines) {
    static const encode_function encode = find_encode_function();
    // Matrices that all lie at one place are one.
    const bool is_one = from.count == 1 || from.distance == 0;
    const cuuint64_t line_bytes = from.line_distance * from.value_bytes;
    const cuuint64_t sizes[] = {from.line_length, from.lines, is_one ? 1 : from.count};
    const cuuint64_t distances[] = {
        line_bytes,
        is_one ? line_bytes : static_cast<cuuint64_t>(from.distance) * from.value_bytes};
    const cuuint32_t box[] = {static_cast<cuuint32_t>(128 / from.value_bytes), box_lines, 1};
    const cuuint32_t steps[] = {1, 1, 1};
    const CUtensorMapDataType type =
        from.value_bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16;
    CUtensorMap map;
    const CUresult result =
        encode(&map, type, 3, const_cast<void*>(from.data), sizes, distances, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    // The codes of the driver are those of the runtime.
    check_cuda(static_cast<cudaError_t>(result), "cuTensorMapEncodeTiled");
    return map;
}

}  // namespace demi::inline DEMI_ABI::detail
