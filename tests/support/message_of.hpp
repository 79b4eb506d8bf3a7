// SPDX-License-Identifier: MIT
/// The message of the error that a call throws, so that a test can see what it names.
#pragma once

#include <demi/core/error.hpp>

#include <initializer_list>
#include <string>
#include <string_view>

/// Empty when the call does not throw an `Error`; other exceptions pass through.
template <class Error, class Call>
std::string message_of(Call&& call) {
    try {
        call();
    } catch (const Error& failure) {
        return failure.what();
    }
    return {};
}

/// Whether a text has every one of these parts.
inline bool mentions(std::string_view text, std::initializer_list<std::string_view> parts) {
    for (const auto part : parts) {
        if (text.find(part) == std::string_view::npos) return false;
    }
    return true;
}
