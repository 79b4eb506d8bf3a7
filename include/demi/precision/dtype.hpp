// SPDX-License-Identifier: MIT
/// Formats as run-time values.
#pragma once

#include <demi/core/error.hpp>
#include <demi/precision/bfloat16.hpp>
#include <demi/precision/float16.hpp>
#include <demi/precision/float8.hpp>
#include <demi/precision/format_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace demi::inline DEMI_ABI {

/// A format; the numbers are part of checkpoints and never change.
enum class dtype : std::uint8_t {
    float32 = 0,
    float64 = 1,
    float16 = 2,
    bfloat16 = 3,
    float8_e4m3 = 4,
    float8_e5m2 = 5,
};

namespace detail {

template <class T>
constexpr dtype dtype_like() {
    if constexpr (same_format<T, float>) return dtype::float32;
    if constexpr (same_format<T, double>) return dtype::float64;
    if constexpr (same_format<T, float16>) return dtype::float16;
    if constexpr (same_format<T, bfloat16>) return dtype::bfloat16;
    if constexpr (same_format<T, float8_e4m3>) return dtype::float8_e4m3;
    if constexpr (same_format<T, float8_e5m2>) return dtype::float8_e5m2;
}

// Not lambdas: nvcc warns of a template parameter that it cannot deduce.
struct name_of_format {
    template <class T>
    constexpr std::string_view operator()() const {
        return format_traits<T>::name;
    }
};

struct bytes_of_format {
    template <class T>
    constexpr std::size_t operator()() const {
        return sizeof(T);
    }
};

inline constexpr std::pair<std::string_view, dtype> dtype_names[] = {
    {"float32", dtype::float32},  {"f32", dtype::float32},
    {"float", dtype::float32},    {"float64", dtype::float64},
    {"f64", dtype::float64},      {"double", dtype::float64},
    {"float16", dtype::float16},  {"f16", dtype::float16},
    {"half", dtype::float16},     {"bfloat16", dtype::bfloat16},
    {"bf16", dtype::bfloat16},    {"float8_e4m3", dtype::float8_e4m3},
    {"e4m3", dtype::float8_e4m3}, {"float8_e5m2", dtype::float8_e5m2},
    {"e5m2", dtype::float8_e5m2},
};

}  // namespace detail

/// The run-time value of the format of `T`, foreign types included.
template <floating_format T>
inline constexpr dtype dtype_of = detail::dtype_like<T>();

/// Calls `fn.template operator()<T>()` with the type of demi that has this format: pass a lambda
/// `[]<class T>() { ... }`. Returns what it returns. Throws `invalid_argument` for a number that is
/// not a `dtype`.
template <class Function>
constexpr decltype(auto) visit_dtype(dtype format, Function&& fn) {
    switch (format) {
        case dtype::float32:
            return fn.template operator()<float>();
        case dtype::float64:
            return fn.template operator()<double>();
        case dtype::float16:
            return fn.template operator()<float16>();
        case dtype::bfloat16:
            return fn.template operator()<bfloat16>();
        case dtype::float8_e4m3:
            return fn.template operator()<float8_e4m3>();
        case dtype::float8_e5m2:
            return fn.template operator()<float8_e5m2>();
    }
    detail::raise(invalid_argument(detail::message("visit_dtype: dtype number ",
                                                   static_cast<int>(format), ", expected 0 to 5")));
}

/// The name of a format, such as "bfloat16".
constexpr std::string_view name_of(dtype format) {
    return visit_dtype(format, detail::name_of_format{});
}

/// Bytes that one value takes.
constexpr std::size_t bytes_of(dtype format) {
    return visit_dtype(format, detail::bytes_of_format{});
}

/// The format with this name, or nothing.
constexpr std::optional<dtype> find_dtype(std::string_view name) {
    for (const auto& [known, format] : detail::dtype_names) {
        if (name == known) return format;
    }
    return std::nullopt;
}

/// The format with this name. Throws `invalid_argument` that lists the names accepted.
inline dtype parse_dtype(std::string_view name) {
    if (const auto format = find_dtype(name)) return *format;
    std::string accepted;
    for (const auto& entry : detail::dtype_names) {
        accepted += detail::message(accepted.empty() ? "" : ", ", entry.first);
    }
    detail::raise(invalid_argument(
        detail::message("parse_dtype: unknown format \"", name, "\", expected one of ", accepted)));
}

}  // namespace demi::inline DEMI_ABI
