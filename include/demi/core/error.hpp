// SPDX-License-Identifier: MIT
/// The error family: what is thrown, and what happens when exceptions are switched off.
#pragma once

#include <demi/core/config.hpp>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {

/// Base of everything that demi throws; the message names the offending value and the expectation.
class error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// An argument is outside what the function accepts; nothing was changed.
class invalid_argument : public error {
public:
    using error::error;
};

/// A call came at the wrong time, for example a second unscale in one step; nothing was changed.
class invalid_state : public error {
public:
    using error::error;
};

/// A file or buffer is not a checkpoint, is damaged, or belongs to something else; nothing was
/// changed.
class bad_checkpoint : public error {
public:
    using error::error;
};

/// An allocation was refused; the batch planner tells it apart from every other failure.
class out_of_memory : public error {
public:
    out_of_memory(const std::string& message, std::size_t requested_bytes)
        : error(message), requested_bytes_(requested_bytes) {}

    /// Bytes that the refused request asked for, 0 when unknown.
    std::size_t requested_bytes() const noexcept { return requested_bytes_; }

private:
    std::size_t requested_bytes_;
};

/// Called with the message before the program aborts, in builds without exceptions only.
using error_handler = void (*)(const char* message);

namespace detail {

inline error_handler& current_error_handler() {
    static error_handler handler = [](const char* message) {
        std::fprintf(stderr, "demi: %s\n", message);
    };
    return handler;
}

template <class Error>
[[noreturn, gnu::cold, gnu::noinline]] void raise(const Error& failure) {
#if DEMI_EXCEPTIONS
    throw failure;
#else
    current_error_handler()(failure.what());
    std::abort();
#endif
}

inline std::string to_text(std::string_view text) { return std::string(text); }

template <class Number>
    requires std::is_arithmetic_v<Number> std::string to_text(Number value) {
        if constexpr (std::is_same_v<Number, bool>) {
            return value ? "true" : "false";
        } else {
            char digits[64];
            const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
            return std::string(digits, end);
        }
    }

/// Joins strings and numbers into one message.
template <class... Parts>
[[gnu::cold]] std::string message(const Parts&... parts) {
    std::string text;
    ((text += to_text(parts)), ...);
    return text;
}

}  // namespace detail

/// Replaces the handler that reports errors in builds without exceptions; returns the former one.
inline error_handler set_error_handler(error_handler handler) {
    return std::exchange(detail::current_error_handler(), handler);
}

}  // namespace demi::inline DEMI_ABI
