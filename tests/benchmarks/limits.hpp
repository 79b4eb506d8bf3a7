// SPDX-License-Identifier: MIT
/// What the hardware allows: copies, reads, streams and chains of FMAs, written for the widest
/// instruction set that the processor has.
#pragma once

#include "contest.hpp"

#include <cstddef>
#include <vector>

namespace bench::limits {

/// The ways to copy `bytes` bytes (a multiple of 64), each as a contender of role `limit` that
/// moves twice as many. Requires arrays at multiples of 64.
std::vector<contender> copies(const void* from, void* to, std::size_t bytes, std::size_t threads);

/// Reads `bytes` bytes and does nothing with them.
std::vector<contender> reads(const void* from, std::size_t bytes, std::size_t threads);

/// The arrays of a fused AdamW update with a 16-bit copy.
struct update_streams {
    const void* gradients = nullptr;
    std::size_t gradient_bytes = 4;  ///< of one element, 4 or 2
    float* weights = nullptr;
    float* means = nullptr;
    float* squares = nullptr;
    void* copy = nullptr;
    std::size_t count = 0;

    double bytes() const {
        return static_cast<double>(count) * static_cast<double>(gradient_bytes + 26);
    }
};

/// Reads and writes these arrays with one addition for each; values stay what they are.
std::vector<contender> updates(const update_streams& arrays, std::size_t threads);

/// Multiply-adds in registers: the most flops of float arithmetic, or none when unknown.
contender fma_peak(std::size_t threads);

/// The same for dot products of bfloat16 pairs; that of float where there are none.
contender bfloat16_peak(std::size_t threads);

}  // namespace bench::limits
