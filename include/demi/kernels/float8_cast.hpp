// SPDX-License-Identifier: MIT
/// Scaled conversion to formats of 8 bits, which learns what the next factor has to be.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/core/real.hpp>
#include <demi/kernels/detail/finite_magnitude.hpp>
#include <demi/kernels/gemm.hpp>
#include <demi/precision/convert.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace demi::inline DEMI_ABI {

/// Single numbers in a backend's memory that go with one tensor in a format of 8 bits.
struct float8_scaling {
    const float* scale = nullptr;    ///< what every value is multiplied by: positive, finite
    float* amax = nullptr;           ///< raised to the largest finite magnitude before scaling
    float* scale_inverse = nullptr;  ///< becomes 1 / scale, which turns values back; may be null
};

/// A format that holds a tensor of 8-bit numbers, and one whose values a float holds.
template <class From, class To>
concept float8_conversion = floating_format<std::remove_const_t<From>> && floating_format<To> &&
                                sizeof(From) <= sizeof(float) &&
                            sizeof(To) == 1;

namespace detail {

/// What a scaled conversion makes of one value: beyond the format's largest value that one, NaN of
/// NaN.
template <class To>
DEMI_HD To scaled_to(float value, float scale) {
    return convert<To>(is_nan(value) ? value : value * scale, nearest_even{}, overflow::saturate);
}

/// The definition, for a backend without a conversion of its own.
template <class From, class To>
struct scaled_cast_task {
    matrix_view<const From> from;
    matrix_view<To> to;
    float8_scaling scaling;

    DEMI_HD void operator()() const {
        const float scale = *scaling.scale;
        std::uint32_t largest = to_bits(*scaling.amax);
        for (std::size_t row = 0; row < from.rows(); ++row) {
            for (std::size_t column = 0; column < from.columns(); ++column) {
                const float value = convert<float>(from(row, column));
                largest = max(largest, finite_magnitude_bits(value));
                to(row, column) = scaled_to<To>(value, scale);
            }
        }
        *scaling.amax = from_bits<float>(largest);
        if (scaling.scale_inverse != nullptr) *scaling.scale_inverse = 1 / scale;
    }
};

template <class From, class To>
void require_scaled_target(std::string_view who, const matrix_view<From>& from,
                           const matrix_view<To>& to) {
    if (from.rows() != to.rows() || from.columns() != to.columns()) {
        raise(invalid_argument(message(who, ": target matrix is ", to.rows(), " x ", to.columns(),
                                       ", expected ", from.rows(), " x ", from.columns())));
    }
    if (overlap(from, to)) {
        raise(invalid_argument(message(who, ": target matrix, ", to.rows(), " x ", to.columns(),
                                       ", shares memory with another one, expected separate "
                                       "memory")));
    }
}

inline void require_scaling(std::string_view who, const float8_scaling& scaling) {
    if (scaling.scale != nullptr && scaling.amax != nullptr) return;
    raise(invalid_argument(message(who, ": scaling.", scaling.scale == nullptr ? "scale" : "amax",
                                   " is null, expected a float in the backend's memory")));
}

}  // namespace detail

/// Computes `to = from * scale`, rounded to nearest even and saturated, and raises `amax`, in one
/// pass where the backend has one.
///
/// A NaN stays NaN; infinity becomes the largest finite value and does not count for `amax`. `amax`
/// has to be 0 or more before; set it to 0 to begin a new measurement. Layouts may differ; for an
/// empty matrix nothing happens. Throws
/// `invalid_argument`, before anything is written, for shapes that differ, memory in common, or
/// null pointers. No synchronisation; deterministic.
template <backend B, class From, class To>
    requires float8_conversion<From, To>
void cast_scaled(const B& where, const matrix_view<From>& from, const matrix_view<To>& to,
                 const float8_scaling& scaling) {
    using source = std::remove_const_t<From>;
    const matrix_view<const source> values(from);
    detail::require_scaled_target("cast_scaled", from, to);
    detail::require_scaling("cast_scaled", scaling);
    if (from.empty()) return;
    if constexpr (requires { where.cast_scaled(values, to, scaling); }) {
        where.cast_scaled(values, to, scaling);
    } else {
        where.invoke(detail::scaled_cast_task<source, To>{values, to, scaling});
    }
}

/// Computes `to = from * scale` as `cast_scaled` does, and `transpose(c, r) = to(r, c)`, for the
/// backward pass: products read both along their rows. One pass where the backend has one, `to` has
/// the layout of `from`, and `transpose` too.
template <backend B, class From, class To>
    requires float8_conversion<From, To>
void cast_transpose(const B& where, const matrix_view<From>& from, const matrix_view<To>& to,
                    const matrix_view<To>& transpose, const float8_scaling& scaling) {
    using source = std::remove_const_t<From>;
    const matrix_view<const source> values(from);
    const matrix_view<To> turned = transposed(transpose);
    detail::require_scaled_target("cast_transpose", from, to);
    detail::require_scaled_target("cast_transpose", from, turned);
    detail::require_scaled_target("cast_transpose", to, turned);
    detail::require_scaling("cast_transpose", scaling);
    if (from.empty()) return;
    if constexpr (requires { where.cast_transpose(values, to, turned, scaling); }) {
        where.cast_transpose(values, to, turned, scaling);
    } else {
        where.invoke(detail::scaled_cast_task<source, To>{values, to, scaling});
        where.invoke(detail::scaled_cast_task<source, To>{values, turned, scaling});
    }
}

}  // namespace demi::inline DEMI_ABI
