// SPDX-License-Identifier: MIT
/// A slice of an operand in shared memory: how it gets there, and how tensor cores read it.
#pragma once

#include <demi/cuda/detail/gemm_instructions.cuh>
#include <demi/cuda/detail/gemm_product.cuh>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace demi::inline DEMI_ABI::detail {

template <int Size>
using value_bits = std::conditional_t<Size == 4, std::uint32_t,
                                      std::conditional_t<Size == 2, std::uint16_t, std::uint8_t>>;

/// The layout of `Across` x `Depth` values of `Size` bytes in lines, as they lie in global memory.
///
/// Pieces of 16 bytes change places within their line such that what is read or written at once
/// lies in different banks: any eight pieces of one line or of one column; where matrices of 16-bit
/// values cannot be read transposed, eight words of each of four lines.
template <bool AlongDepth, int Across, int Depth, int Size>
struct shared_tile {
    static_assert(AlongDepth || Size > 1, "bytes are not transposed");
    static constexpr int value_bytes = Size;
    static constexpr bool by_words = !AlongDepth && Size == 4;
    static constexpr int lines = AlongDepth ? Across : Depth;
    static constexpr int line_length = AlongDepth ? Depth : Across;
    static constexpr int line_bytes = Size * line_length;
    static constexpr int pieces = line_bytes / 16;
    static constexpr int bytes = lines * line_bytes;

    static __device__ int offset(int line, int byte) {
        const int turn = by_words      ? line % 4 * 2
                         : pieces >= 8 ? line % 8
                                       : line / (8 / pieces) % pieces;
        return line * line_bytes + (byte ^ (turn * 16));
    }

    /// What one instruction multiplies of the depth.
    static constexpr int step_depth = 32 / Size;

    /// Where this lane reads of 16 x `step_depth` values that begin `first` values across.
    /// `DepthFirst`: of the four matrices of 8 x 16 bytes the second is further along the depth,
    /// else further across.
    template <bool DepthFirst>
    static __device__ int lane_offset(int first) {
        const int lane = threadIdx.x % 32;
        const int low = lane / 8 % 2;
        const int high = lane / 16;
        if constexpr (by_words) return offset(lane % 4, Size * (first + lane / 4));
        const int across = first + 8 * (DepthFirst ? high : low);
        const int deeper = DepthFirst ? low : high;
        return AlongDepth ? offset(across + lane % 8, 16 * deeper)
                          : offset(8 * deeper + lane % 8, Size * across);
    }

    /// The fragments for one instruction, 16 `i` values further across and `step` steps deeper.
    template <bool DepthFirst>
    static __device__ void load(std::uint32_t (&to)[4], std::uint32_t slice, int lane_offset, int i,
                                int step) {
        if constexpr (by_words) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int across = 16 * i + 8 * (DepthFirst ? j / 2 : j % 2);
                const int deeper = step_depth * step + 4 * (DepthFirst ? j % 2 : j / 2);
                to[j] = load_shared(((slice + lane_offset) ^ (Size * across % 128)) +
                                    Size * across / 128 * 128 + deeper * line_bytes);
            }
        } else {
            const int place =
                AlongDepth ? (lane_offset ^ (32 * step)) + 16 * i * line_bytes
                           : (lane_offset ^ (16 * Size * i)) + step_depth * step * line_bytes;
            load_matrices<!AlongDepth>(to, slice + place);
        }
    }
};

/// Copies slices of one operand, from any place, to shared memory, one after the other; what lies
/// beyond the operand becomes zero.
///
/// `Wide`: of every line 16 bytes can be read at once; a kernel that need not tell keeps registers.
template <class Tile, bool AlongDepth, bool Wide, int Threads>
class slice_source {
public:
    using value = value_bits<Tile::value_bytes>;

    /// `first`: the block's first value. `access`: bytes of any line that can be read at once.
    __device__ slice_source(const value* first, std::size_t leading, std::size_t across_left,
                            int access)
        : first_(first),
          leading_(leading),
          across_left_(static_cast<int>(::min(across_left, across))),
          access_(access) {}

    /// Starts to copy the next slice, which has `depth` values of the inner dimension.
    __device__ void copy(std::uint32_t to, int depth) {
        const int lines = AlongDepth ? across_left_ : depth;
        const int bytes = size * (AlongDepth ? depth : across_left_);
        if (Wide || access_ == 16) {
            copy_pieces<16>(to, lines, bytes);
        } else if (access_ == 8) {
            copy_pieces<8>(to, lines, bytes);
        } else if (access_ == 4) {
            copy_pieces<4>(to, lines, bytes);
        } else if constexpr (size < 4) {
            copy_values(to, lines, bytes);
        }
        first_ += AlongDepth ? std::size_t{Tile::line_length} : Tile::lines * leading_;
    }

private:
    static constexpr int size = Tile::value_bytes;
    static constexpr std::size_t across = AlongDepth ? Tile::lines : Tile::line_length;

    template <int Bytes>
    __device__ void copy_pieces(std::uint32_t to, int lines, int bytes) const {
        const int thread = static_cast<int>(threadIdx.x);
        constexpr int per_line = Tile::line_bytes / Bytes;
        constexpr int line_step = Threads / per_line;
        static_assert(line_step > 0 && Threads % per_line == 0);
        const int line = thread / per_line;
        const int byte = thread % per_line * Bytes;
        const int valid = ::max(0, ::min(Bytes, bytes - byte));
        const value* from = first_ + static_cast<std::size_t>(line) * leading_ + byte / size;
        const std::size_t step = line_step * leading_;
#pragma unroll(Bytes == 16 ? 8 : 1)
        for (int i = 0; i < Tile::lines; i += line_step) {
            copy_async<Bytes>(to + Tile::offset(line + i, byte), from,
                              line + i < lines ? valid : 0);
            from += step;
        }
    }

    /// One value at a time; through registers, for no asynchronous copy is that short.
    __device__ void copy_values(std::uint32_t to, int lines, int bytes) const {
        const int thread = static_cast<int>(threadIdx.x);
        constexpr int group = 8;
        constexpr int count = Tile::bytes / size / Threads;
        const auto line_of = [=](int i) { return (thread + i * Threads) / Tile::line_length; };
        const auto byte_of = [=](int i) {
            return (thread + i * Threads) % Tile::line_length * size;
        };
#pragma unroll 1
        for (int i = 0; i < count; i += group) {
            value values[group];
#pragma unroll
            for (int j = 0; j < group; ++j) {
                const auto line = static_cast<std::size_t>(line_of(i + j));
                const int byte = byte_of(i + j);
                const bool inside = line_of(i + j) < lines && byte < bytes;
                values[j] = inside ? first_[line * leading_ + byte / size] : value{};
            }
#pragma unroll
            for (int j = 0; j < group; ++j) {
                const int place = Tile::offset(line_of(i + j), byte_of(i + j));
                store_shared(to + place, values[j]);
            }
        }
    }

    const value* first_;
    std::size_t leading_;
    int across_left_;
    int access_;
};

}  // namespace demi::inline DEMI_ABI::detail
