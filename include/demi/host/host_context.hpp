// SPDX-License-Identifier: MIT
/// What a host kernel needs to know about the backend that runs it.
#pragma once

#include <demi/host/isa.hpp>
#include <demi/host/parallel.hpp>

#include <memory_resource>

namespace demi::inline DEMI_ABI {

struct host_context {
    host_isa isa = host_isa::portable;
    const host_executor* executor = nullptr;
    std::pmr::memory_resource* memory = nullptr;
};

}  // namespace demi::inline DEMI_ABI
