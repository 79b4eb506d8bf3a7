// SPDX-License-Identifier: MIT
/// What nearly every unit test includes, compiled once.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <support/catch.hpp>
#include <thread>
#include <tuple>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif
