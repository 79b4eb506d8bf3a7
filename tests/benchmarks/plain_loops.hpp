// SPDX-License-Identifier: MIT
/// What a training program does without fused passes: one loop for each step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench::plain {

/// Unscales in place, looks for a value that is not finite, and sums squares: three loops.
float check_and_norm(float* gradients, std::size_t count, float inverse_scale);

struct adamw_arrays {
    float* gradients = nullptr;
    float* weights = nullptr;
    float* means = nullptr;
    float* squares = nullptr;
    std::uint16_t* copy = nullptr;  ///< float16
};

struct adamw_factors {
    float inverse_scale = 1;
    float beta1 = 0.9f;
    float beta2 = 0.999f;
    float epsilon = 1e-8f;
    float step_size = 1e-3f;
    float root_correction = 1;
    float weight_factor = 1;
};

/// Unscale, first moment, second moment, decay, step and copy: six loops.
void adamw(const adamw_arrays& arrays, std::size_t begin, std::size_t end,
           const adamw_factors& factors);

}  // namespace bench::plain
