// SPDX-License-Identifier: MIT
/// Taking the text form of a policy apart.
#pragma once

#include <demi/core/error.hpp>

#include <optional>
#include <string_view>

namespace demi::inline DEMI_ABI {
namespace detail {

/// The values of "p=...,c=...,o=...,g=...".
struct policy_items {
    std::optional<std::string_view> param;
    std::optional<std::string_view> compute;
    std::optional<std::string_view> output;
    std::optional<std::string_view> gradient;
};

constexpr std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

inline std::optional<std::string_view>* find_policy_item(policy_items& items,
                                                         std::string_view key) {
    if (key == "p" || key == "param" || key == "params") return &items.param;
    if (key == "c" || key == "compute") return &items.compute;
    if (key == "o" || key == "output") return &items.output;
    if (key == "g" || key == "gradient") return &items.gradient;
    return nullptr;
}

/// Reads one "key=value" into its place.
inline void parse_policy_item(policy_items& items, std::string_view item) {
    const auto equals = item.find('=');
    if (equals == std::string_view::npos) {
        raise(invalid_argument(
            message("parse_policy: \"", item, "\" has no \"=\", expected key=format")));
    }
    const std::string_view key = trimmed(item.substr(0, equals));
    std::optional<std::string_view>* place = find_policy_item(items, key);
    if (place == nullptr) {
        raise(invalid_argument(message("parse_policy: unknown key \"", key,
                                       "\", expected p (param), c (compute), o (output) or g "
                                       "(gradient)")));
    }
    if (place->has_value()) {
        raise(invalid_argument(
            message("parse_policy: key \"", key, "\" is given twice, expected once")));
    }
    *place = trimmed(item.substr(equals + 1));
}

/// Reads a comma-separated list of "key=value".
inline policy_items parse_policy_items(std::string_view text) {
    policy_items items;
    for (;;) {
        const auto comma = text.find(',');
        parse_policy_item(items, trimmed(text.substr(0, comma)));
        if (comma == std::string_view::npos) return items;
        text.remove_prefix(comma + 1);
    }
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
