// SPDX-License-Identifier: MIT
/// Which exceptions mean that memory ran out.
#pragma once

#include <demi/core/error.hpp>

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

namespace demi::inline DEMI_ABI {

/// Whether a text says that memory ran out, as libraries without an exception type of their own put
/// it. Case does not matter, and an underscore reads as a space. "Not supported", "invalid
/// configuration" and "illegal memory access" do not.
inline bool says_out_of_memory(std::string_view text) {
    std::string plain(text);
    for (char& letter : plain) {
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
        if (letter == '_') letter = ' ';
    }
    constexpr std::string_view phrases[] = {"out of memory",
                                            "out of device memory",
                                            "out of host memory",
                                            "alloc failed",
                                            "allocation failed",
                                            "bad alloc",
                                            "memoryallocation",
                                            "not enough memory",
                                            "insufficient memory",
                                            "cannot allocate memory",
                                            "can't allocate memory",
                                            "can not allocate memory",
                                            "unable to allocate memory",
                                            "failed to allocate memory",
                                            "resource exhausted"};
    for (const std::string_view phrase : phrases) {
        if (plain.find(phrase) != std::string::npos) return true;
    }
    return false;
}

#if DEMI_EXCEPTIONS

/// Whether a failure means that memory ran out: by type (`demi::out_of_memory`, `std::bad_alloc`,
/// `std::system_error` with `not_enough_memory`), and otherwise by its text.
inline bool is_out_of_memory(const std::exception& failure) {
    if (dynamic_cast<const out_of_memory*>(&failure)) return true;
    if (dynamic_cast<const std::bad_alloc*>(&failure)) return true;
    if (const auto* system = dynamic_cast<const std::system_error*>(&failure)) {
        return system->code() == std::errc::not_enough_memory;
    }
    return says_out_of_memory(failure.what());
}

/// The same for a stored exception of any type, and for one nested in it.
inline bool is_out_of_memory(const std::exception_ptr& failure) {
    if (!failure) return false;
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& thrown) {
        if (is_out_of_memory(thrown)) return true;
        const auto* nested = dynamic_cast<const std::nested_exception*>(&thrown);
        return nested && is_out_of_memory(nested->nested_ptr());
    } catch (...) {
        return false;
    }
}

/// Recognises exceptions of a type, for `batch_plan_settings::also_out_of_memory`.
template <class Exception>
bool is_thrown(const std::exception_ptr& failure) {
    try {
        if (failure) std::rethrow_exception(failure);
    } catch (const Exception&) {
        return true;
    } catch (...) {
    }
    return false;
}

#endif

}  // namespace demi::inline DEMI_ABI
