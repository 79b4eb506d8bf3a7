// SPDX-License-Identifier: MIT
/// Random bits as a pure function of a key and an index, for stochastic rounding.
#pragma once

#include <demi/core/config.hpp>

#include <cstdint>

// Construction: two rounds of a 32-bit mixer over the low word of the index, the first whitened
// with one half of the mixed key, the second offset with the other half and the mixed high word of
// the index. The mixer is the xor-shift-multiply finaliser in the form of C. Wellons' search for
// low avalanche bias (shifts 16, 15, 16); the 64-bit one is D. Stafford's variant 13. Within 2^32
// consecutive indices of one key no word repeats, which rounding cannot notice. Not for
// cryptography.

namespace demi::inline DEMI_ABI {

namespace detail {

/// `Word` is `std::uint32_t`, or lanes of it.
template <class Word>
DEMI_HD constexpr Word mix_32(Word word) {
    word = word ^ (word >> 16);
    word = word * 0x7feb352du;
    word = word ^ (word >> 15);
    word = word * 0x846ca68bu;
    return word ^ (word >> 16);
}

DEMI_HD constexpr std::uint64_t mix_64(std::uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

inline constexpr std::uint64_t golden_64 = 0x9e3779b97f4a7c15u;
inline constexpr std::uint32_t golden_32 = 0x9e3779b9u;

}  // namespace detail

/// What 2^32 consecutive indices have in common: compute it once, outside the loop.
struct random_block {
    std::uint32_t whitening = 0;
    std::uint32_t offset = 0;
};

/// The block of the indices whose upper 32 bits are `index_high`.
DEMI_HD constexpr random_block make_random_block(std::uint64_t key, std::uint32_t index_high) {
    const auto low = static_cast<std::uint32_t>(key);
    const auto high = static_cast<std::uint32_t>(key >> 32);
    const std::uint32_t whitening = detail::mix_32(low + detail::golden_32);
    const std::uint32_t folded = detail::mix_32((high + detail::golden_32) ^ whitening);
    return {whitening, detail::mix_32(folded + detail::mix_32(index_high))};
}

/// 32 random bits for the index of a block whose lower 32 bits are `index_low`.
///
/// `Word` is `std::uint32_t`, or lanes of it with `+ * ^ >>`: two multiplications of 32 bits each
/// round, no wider arithmetic.
template <class Word>
DEMI_HD constexpr Word random_bits(const random_block& block, Word index_low) {
    const Word first = detail::mix_32(static_cast<Word>(index_low ^ block.whitening));
    return detail::mix_32(static_cast<Word>(first + block.offset));
}

/// 32 random bits for element `index` under `key`: the same on any thread count, rank or restart.
DEMI_HD constexpr std::uint32_t random_bits(std::uint64_t key, std::uint64_t index) {
    return random_bits(make_random_block(key, static_cast<std::uint32_t>(index >> 32)),
                       static_cast<std::uint32_t>(index));
}

/// The key of one tensor at one step of one run.
DEMI_HD constexpr std::uint64_t random_key(std::uint64_t seed, std::uint64_t step,
                                           std::uint64_t tensor) {
    std::uint64_t key = detail::mix_64(seed + detail::golden_64);
    key = detail::mix_64(key + step + detail::golden_64);
    return detail::mix_64(key + tensor + detail::golden_64);
}

}  // namespace demi::inline DEMI_ABI
