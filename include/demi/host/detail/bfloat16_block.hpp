// SPDX-License-Identifier: MIT
/// Blocks of bfloat16 and float, converted by integer arithmetic.
#pragma once

#include <demi/core/rounding.hpp>
#include <demi/host/detail/dispatch.hpp>
#include <demi/host/detail/word_lanes.hpp>
#include <demi/precision/bfloat16.hpp>
#include <demi/precision/random_bits.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI {

/// Stochastic rounding of a block: the key of its tensor, and the index of its first element there.
struct stochastic_block {
    std::uint64_t key = 0;
    std::uint64_t first = 0;
};

namespace detail {

/// Rounding of the elements of a block that does not cross a multiple of 2^32.
template <class Rounding>
struct block_rounding {
    explicit block_rounding(Rounding) {}

    DEMI_HOST_KERNEL Rounding at(std::uint32_t) const { return {}; }
    DEMI_HOST_KERNEL const block_rounding& from(std::size_t) const { return *this; }
};

template <>
struct block_rounding<stochastic_block> {
    random_block block;
    std::uint32_t first;

    explicit block_rounding(const stochastic_block& rounding)
        : block(make_random_block(rounding.key, static_cast<std::uint32_t>(rounding.first >> 32))),
          first(static_cast<std::uint32_t>(rounding.first)) {}

    DEMI_HOST_KERNEL stochastic_bits at(std::uint32_t i) const {
        return {random_bits(block, first + i)};
    }
    DEMI_HOST_KERNEL block_rounding from(std::size_t i) const {
        block_rounding rest = *this;
        rest.first += static_cast<std::uint32_t>(i);
        return rest;
    }
};

template <class Word>
DEMI_HOST_KERNEL Word round_to_bfloat16(const Word& bits, const block_rounding<nearest_even>&,
                                        const Word&) {
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

template <class Word>
DEMI_HOST_KERNEL Word round_to_bfloat16(const Word& bits, const block_rounding<toward_zero>&,
                                        const Word&) {
    return bits >> 16;
}

template <class Word>
DEMI_HOST_KERNEL Word round_to_bfloat16(const Word& bits,
                                        const block_rounding<stochastic_block>& rounding,
                                        const Word& position) {
    const Word random = random_bits(rounding.block, Word(position + rounding.first));
    return (bits + (random >> 16)) >> 16;
}

/// NaN is told apart first, without a comparison: adding to its bits might make it a number.
template <class Word, class Rounding>
DEMI_HOST_KERNEL Word to_bfloat16(const Word& bits, const block_rounding<Rounding>& rounding,
                                  const Word& position) {
    const Word number = round_to_bfloat16(bits, rounding, position);
    const Word quiet = (bits >> 16) | 0x40u;
    const Word is_nan = spread_sign(Word(0x7f800000u) - (bits & 0x7fffffffu));
    return number ^ ((number ^ quiet) & is_nan);
}

/// A signalling NaN becomes quiet, everything else is the upper half of a float.
template <class Word>
DEMI_HOST_KERNEL Word from_bfloat16(const Word& halves) {
    const Word bits = halves << 16;
    const Word is_nan = spread_sign(Word(0x7f800000u) - (bits & 0x7fffffffu));
    return bits | (is_nan & 0x00400000u);
}

/// Converts whole packs and returns how many elements that were.
template <class Stores, int Count, class Half, class Rounding>
DEMI_HOST_KERNEL std::size_t convert_packs(const float* from, Half* to, std::size_t count,
                                           const block_rounding<Rounding>& rounding) {
    using word = word_lanes<Count>;
    std::size_t i = 0;
    word position = word::ascending();
    for (; i + Count <= count; i += Count) {
        to_bfloat16(word::load(from + i), rounding, position).template store_halves<Stores>(to + i);
        position = position + static_cast<std::uint32_t>(Count);
    }
    return i;
}

template <class Stores, int Count, class Half, class Rounding>
DEMI_HOST_KERNEL std::size_t convert_packs(const Half* from, float* to, std::size_t count,
                                           const block_rounding<Rounding>&) {
    using word = word_lanes<Count>;
    std::size_t i = 0;
    for (; i + Count <= count; i += Count) {
        from_bfloat16(word::load_halves(from + i)).template store<Stores>(to + i);
    }
    return i;
}

template <class To, class From>
inline constexpr bool is_bfloat16_conversion = (std::same_as<To, float> &&
                                                same_format<From, bfloat16>) ||
                                               (std::same_as<From, float> &&
                                                same_format<To, bfloat16>);

/// What there is without instructions of its own: nothing.
template <host_isa Isa>
struct bfloat16_block {
    template <class To, class From, class Rounding>
    static constexpr bool converts = false;
};

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
