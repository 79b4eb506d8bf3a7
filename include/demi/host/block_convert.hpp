// SPDX-License-Identifier: MIT
/// Conversion of a block of numbers between formats, bit for bit what `convert` does to each.
#pragma once

#include <demi/host/detail/bfloat16_block.hpp>
#include <demi/host/detail/dispatch.hpp>
#include <demi/host/detail/half_block.hpp>
#include <demi/precision/convert.hpp>
#include <demi/precision/random_bits.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI {

namespace detail {

/// The compiler vectorises a loop of this many steps without further checks.
inline constexpr std::size_t convert_step = 32;

/// Converts one element; its bits go through memory, whatever the declared type there.
template <class To, class From, class Rounding>
DEMI_HOST_KERNEL void convert_number(const From* from, To* to, Rounding rounding) {
    bits_of<From> bits;
    __builtin_memcpy(&bits, from, sizeof bits);
    const bits_of<To> result = convert_bits<To, From>(bits, rounding);
    __builtin_memcpy(static_cast<void*>(to), &result, sizeof result);
}

/// Converts elements from `i` on.
template <class To, class From, class Rounding>
DEMI_HOST_KERNEL void convert_numbers(const From* __restrict from, To* __restrict to, std::size_t i,
                                      std::size_t count, const block_rounding<Rounding>& rounding) {
    for (; i + convert_step <= count; i += convert_step) {
        for (std::size_t j = 0; j < convert_step; ++j) {
            convert_number(from + i + j, to + i + j,
                           rounding.at(static_cast<std::uint32_t>(i + j)));
        }
    }
    for (; i < count; ++i) {
        convert_number(from + i, to + i, rounding.at(static_cast<std::uint32_t>(i)));
    }
}

template <class To, class From, class Rounding>
struct block_conversion {
    const From* from;
    To* to;
    std::size_t count;
    block_rounding<Rounding> rounding;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        if constexpr (half_block<Isa>::template converts<To, From, Rounding>) {
            half_block<Isa>::convert(from, to, count, Rounding{});
        } else if constexpr (is_bfloat16_conversion<To, From>) {
            const std::size_t done = convert_packs<lane_count<Isa>>(from, to, count, rounding);
            convert_numbers(from, to, done, count, rounding);
        } else {
            convert_numbers(from, to, 0, count, rounding);
        }
    }
};

}  // namespace detail

/// Converts `count` numbers from one place to another that does not overlap it, with the given
/// instruction set, which this processor must have. `Rounding` is `nearest_even`, `toward_zero` or
/// `stochastic_block`. One pass.
template <class To, class From, class Rounding>
[[gnu::noinline]] void convert_block(host_isa isa, const From* from, To* to, std::size_t count,
                                     Rounding rounding) {
    if constexpr (std::same_as<Rounding, stochastic_block>) {
        // The upper half of an index is the same for the whole of a block of random bits.
        const std::uint64_t left = (std::uint64_t{1} << 32) - (rounding.first & 0xffffffff);
        if (count > left) {
            convert_block(isa, from, to, static_cast<std::size_t>(left), rounding);
            return convert_block(isa, from + left, to + left, count - left,
                                 stochastic_block{rounding.key, rounding.first + left});
        }
    }
    using block_rounding = detail::block_rounding<Rounding>;
    detail::run_on(isa, detail::block_conversion<To, From, Rounding>{from, to, count,
                                                                     block_rounding(rounding)});
}

}  // namespace demi::inline DEMI_ABI
