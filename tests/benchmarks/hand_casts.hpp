// SPDX-License-Identifier: MIT
/// Conversion loops as somebody would write them by hand for one processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench::hand {

using narrow_function = void (*)(const float*, std::uint16_t*, std::size_t);
using widen_function = void (*)(const std::uint16_t*, float*, std::size_t);

/// A loop over whole vectors: counts are multiples of 32. `exact` unless it treats subnormal
/// numbers or NaN in another way than IEEE does.
template <class Function>
struct loop {
    std::string name;
    Function function = nullptr;
    bool exact = true;
};

/// Those that this processor can run, the fastest one first.
std::vector<loop<narrow_function>> float16_from_float();
std::vector<loop<widen_function>> float_from_float16();
std::vector<loop<narrow_function>> bfloat16_from_float();
std::vector<loop<widen_function>> float_from_bfloat16();

/// Loops past the caches that move the bytes of a cast and compute nothing: two vectors come in for
/// each one that goes out, or the other way round. Requires arrays at multiples of 64.
std::vector<loop<narrow_function>> narrow_streams();
std::vector<loop<widen_function>> widen_streams();

}  // namespace bench::hand
