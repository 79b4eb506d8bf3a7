// SPDX-License-Identifier: MIT
#include "plain_loops.hpp"

#include <cmath>
#include <cstring>

namespace bench::plain {

namespace {

bool all_finite(const float* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (!std::isfinite(values[i])) return false;
    }
    return true;
}

/// For finite values within the range of float16, subnormal ones included.
std::uint16_t to_float16(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    const std::uint32_t magnitude = bits & 0x7fffffff;
    const std::uint32_t sign = bits >> 16 & 0x8000;
    // 2^-14 is the smallest normal number; below it an addition shifts the bits into place.
    float small = 0;
    std::memcpy(&small, &magnitude, sizeof small);
    small += 0.5f;
    std::uint32_t subnormal = 0;
    std::memcpy(&subnormal, &small, sizeof subnormal);
    subnormal -= 0x3f000000;
    const std::uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    return static_cast<std::uint16_t>(sign | (magnitude < 0x38800000 ? subnormal : normal));
}

}  // namespace

float check_and_norm(float* gradients, std::size_t count, float inverse_scale) {
    for (std::size_t i = 0; i < count; ++i) gradients[i] *= inverse_scale;
    if (!all_finite(gradients, count)) return -1;
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += gradients[i] * gradients[i];
    return std::sqrt(sum);
}

void adamw(const adamw_arrays& arrays, std::size_t begin, std::size_t end,
           const adamw_factors& factors) {
    float* const g = arrays.gradients;
    float* const w = arrays.weights;
    float* const m = arrays.means;
    float* const v = arrays.squares;
    const auto [inverse_scale, beta1, beta2, epsilon, step_size, root_correction, weight_factor] =
        factors;
    for (std::size_t i = begin; i < end; ++i) g[i] *= inverse_scale;
    for (std::size_t i = begin; i < end; ++i) m[i] = beta1 * m[i] + (1 - beta1) * g[i];
    for (std::size_t i = begin; i < end; ++i) v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
    for (std::size_t i = begin; i < end; ++i) w[i] *= weight_factor;
    for (std::size_t i = begin; i < end; ++i) {
        w[i] -= step_size * m[i] / (std::sqrt(v[i]) * root_correction + epsilon);
    }
    for (std::size_t i = begin; i < end; ++i) arrays.copy[i] = to_float16(w[i]);
}

}  // namespace bench::plain
