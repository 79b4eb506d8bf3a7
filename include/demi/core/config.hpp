// SPDX-License-Identifier: MIT
/// Language check, host/device decoration and the ABI namespace.
#pragma once

#include <demi/core/version.hpp>

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "demi needs C++20: compile with -std=c++20 (for nvcc too)"
#endif

/// Marks a function that runs on the host and, under nvcc, on the device as well.
#if defined(__CUDACC__)
#define DEMI_HD __host__ __device__
#else
#define DEMI_HD
#endif

/// Marks the call operator of a functor that calls other functors: they become part of it, so that
/// packs of lanes meet the instruction set of the loop around it. clang does that to direct calls
/// only, and would else leave a large inner functor to run without the instruction set.
#if defined(__CUDACC__)
#define DEMI_FLATTEN
#else
#define DEMI_FLATTEN [[gnu::flatten]]
#endif

/// 1 when errors are thrown, 0 when they go to the error handler and abort (-fno-exceptions).
#if defined(__cpp_exceptions)
#define DEMI_EXCEPTIONS 1
#else
#define DEMI_EXCEPTIONS 0
#endif

#define DEMI_DETAIL_JOIN(major, minor) v##major##_##minor
#define DEMI_DETAIL_ABI(major, minor) DEMI_DETAIL_JOIN(major, minor)
/// The inline namespace of everything public, so that two incompatible versions cannot be linked
/// together by accident.
#define DEMI_ABI DEMI_DETAIL_ABI(DEMI_VERSION_MAJOR, DEMI_VERSION_MINOR)
