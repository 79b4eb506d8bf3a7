// SPDX-License-Identifier: MIT
/// How packs are read from and written to memory of each format.
#pragma once

#include <demi/core/rounding.hpp>
#include <demi/host/detail/bfloat16_avx512.hpp>
#include <demi/host/detail/bfloat16_block.hpp>
#include <demi/host/detail/half_block.hpp>
#include <demi/host/detail/pair_lanes.hpp>
#include <demi/host/lanes.hpp>
#include <demi/precision/format_traits.hpp>

#include <concepts>
#include <cstddef>

namespace demi::inline DEMI_ABI {
namespace detail {

/// A number type of a pass: a scalar that stands for itself, or a pack of floats.
template <class Pack>
struct pack_traits {
    using scalar = Pack;
    static constexpr std::size_t count = 1;
    DEMI_HOST_KERNEL static Pack load(const Pack* from) { return *from; }
    DEMI_HOST_KERNEL static void store(Pack* to, const Pack& value) { *to = value; }
};

template <int Count>
struct pack_traits<lanes<Count>> {
    using scalar = float;
    static constexpr std::size_t count = Count;
    DEMI_HOST_KERNEL static lanes<Count> load(const float* from) {
        return lanes<Count>::load(from);
    }
    DEMI_HOST_KERNEL static void store(float* to, const lanes<Count>& value) { value.store(to); }
};

template <class Format, host_isa Isa>
struct pack_traits<pair_lanes<Format, Isa>> {
    using scalar = Format;
    static constexpr std::size_t count = pair_lanes<Format, Isa>::count;
};

/// Whether and how packs go to and from elements of a format without a detour through a block. In
/// general only the pack's own scalar does.
template <class Pack, class Element, class Rounding>
struct pack_memory {
    using traits = pack_traits<Pack>;
    static constexpr bool direct = std::same_as<Element, typename traits::scalar>;

    DEMI_HOST_KERNEL static Pack load(const Element* from) { return traits::load(from); }
    DEMI_HOST_KERNEL static void store(Element* to, const Pack& value) { traits::store(to, value); }
};

template <class Format, host_isa Isa, class Element, class Rounding>
struct pack_memory<pair_lanes<Format, Isa>, Element, Rounding> {
    static constexpr bool direct = same_format<Element, Format>;

    DEMI_HOST_KERNEL static pair_lanes<Format, Isa> load(const Element* from) {
        return pair_lanes<Format, Isa>(from);
    }
};

template <class Rounding>
inline constexpr bool rounds_without_place =
    std::same_as<Rounding, nearest_even> || std::same_as<Rounding, toward_zero>;

template <int Count>
DEMI_HOST_KERNEL void load_bfloat16(lanes<Count>& to, const void* from) {
    to = from_bfloat16(word_lanes<Count>::load_halves(from)).numbers();
}

#if defined(__x86_64__)
[[DEMI_TARGET_AVX512]] inline void load_bfloat16(lanes<16>& to, const void* from) {
    to.values() = bfloat16_block<host_isa::avx512>::widen_halves(
        _mm256_loadu_si256(static_cast<const __m256i*>(from)));
}
#endif

template <int Count, class Element, class Rounding>
    requires(same_format<Element, bfloat16>&& rounds_without_place<Rounding>)
struct pack_memory<lanes<Count>, Element, Rounding> {
    using word = word_lanes<Count>;
    static constexpr bool direct = true;

    DEMI_HOST_KERNEL static lanes<Count> load(const Element* from) {
        lanes<Count> result;
        load_bfloat16(result, from);
        return result;
    }
    DEMI_HOST_KERNEL static void store(Element* to, const lanes<Count>& value) {
        to_bfloat16(word(value), block_rounding<Rounding>(Rounding{}), word(0u)).store_halves(to);
    }
};

#if defined(__x86_64__)

template <int Count, class Element, class Rounding>
    requires(same_format<Element, float16>&& rounds_without_place<Rounding>&& Count >= 8)
struct pack_memory<lanes<Count>, Element, Rounding> {
    using operations = vector_operations<Count>;
    static constexpr bool direct = true;

    DEMI_HOST_KERNEL static lanes<Count> load(const Element* from) {
        lanes<Count> result;
        operations::load_float16(result.values(), from);
        return result;
    }
    DEMI_HOST_KERNEL static void store(Element* to, const lanes<Count>& value) {
        operations::template store_float16<rounding_code<Rounding>>(to, value.values());
    }
};

#endif

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
