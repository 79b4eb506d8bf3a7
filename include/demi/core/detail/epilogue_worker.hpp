// SPDX-License-Identifier: MIT
/// What a thread calls for an epilogue: the epilogue itself, or what it begins for the thread.
#pragma once

#include <demi/core/config.hpp>

#include <concepts>
#include <utility>

namespace demi::inline DEMI_ABI {
namespace detail {

/// Epilogues that keep something in each thread; see `epilogue`.
template <class E>
concept begun_epilogue = requires(const E& function) {
    function.begin().end();
};

/// The worker of an epilogue, or a plain epilogue as it is. The epilogue must outlive it.
template <class E>
DEMI_HD decltype(auto) begin_epilogue(const E& function) {
    if constexpr (begun_epilogue<E>) {
        return function.begin();
    } else {
        return (function);
    }
}

template <class E>
using epilogue_worker = decltype(begin_epilogue(std::declval<const E&>()));

template <class E>
DEMI_HD void end_epilogue(epilogue_worker<E>& worker) {
    if constexpr (begun_epilogue<E>) worker.end();
}

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
