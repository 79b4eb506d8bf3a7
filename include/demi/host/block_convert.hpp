// SPDX-License-Identifier: MIT
/// Conversion of a block of numbers between formats, bit for bit what `convert` does to each.
#pragma once

#include <demi/host/detail/bfloat16_avx512.hpp>
#include <demi/host/detail/bfloat16_block.hpp>
#include <demi/host/detail/dispatch.hpp>
#include <demi/host/detail/half_block.hpp>
#include <demi/host/detail/narrow_avx2.hpp>
#include <demi/host/detail/narrow_avx512.hpp>
#include <demi/host/detail/stores.hpp>
#include <demi/precision/convert.hpp>
#include <demi/precision/random_bits.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI {

template <class Stores = detail::cached_stores, class To, class From, class Rounding>
void convert_block(host_isa isa, const From* from, To* to, std::size_t count, Rounding rounding);

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

/// Whether the conversion has a kernel of its own that stores as it is told.
template <host_isa Isa, class To, class From, class Rounding>
inline constexpr bool has_streaming_kernel =
    same_format<To, From> || half_block<Isa>::template converts<To, From, Rounding> ||
    (Isa == host_isa::avx2 && is_bfloat16_conversion<To, From>) ||
    bfloat16_block<Isa>::template converts<To, From, Rounding> ||
    narrow_block<Isa>::template converts<To, From, Rounding>;

template <class To, class From, class Rounding, class Stores = cached_stores>
struct block_conversion {
    const From* from;
    To* to;
    std::size_t count;
    block_rounding<Rounding> rounding;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        if constexpr (sizeof(From) <= 2 && sizeof(To) <= 2 && !same_format<To, From>) {
            run_through_floats<Isa>();
        } else if constexpr (Stores::stream && same_format<To, From>) {
            stream_lines<Isa>(reinterpret_cast<const std::byte*>(from),
                              reinterpret_cast<std::byte*>(to), count * sizeof(To));
        } else if constexpr (Stores::stream && !has_streaming_kernel<Isa, To, From, Rounding>) {
            run_through_lines<Isa>();
        } else if constexpr (same_format<To, From>) {
            __builtin_memmove(static_cast<void*>(to), from, count * sizeof(To));
        } else if constexpr (half_block<Isa>::template converts<To, From, Rounding>) {
            half_block<Isa>::template convert<Stores>(from, to, count, Rounding{});
        } else if constexpr (bfloat16_block<Isa>::template converts<To, From, Rounding>) {
            bfloat16_block<Isa>::template convert<Stores>(from, to, count, rounding);
        } else if constexpr (narrow_block<Isa>::template converts<To, From, Rounding>) {
            narrow_block<Isa>::template convert<Stores>(from, to, count, rounding);
        } else if constexpr (is_bfloat16_conversion<To, From>) {
            const std::size_t done =
                convert_packs<Stores, lane_count<Isa>>(from, to, count, rounding);
            convert_numbers(from, to, done, count, rounding);
        } else {
            convert_numbers(from, to, 0, count, rounding);
        }
    }

    /// Four places of a long block by turns: while one waits for a page of its memory to be found,
    /// the others go on. Places close to each other would confuse the processor's prefetching.
    /// Requires a block of whole cache lines.
    template <host_isa Isa>
    DEMI_HOST_KERNEL void run_by_turns() const {
        constexpr std::size_t places = 4;
        constexpr std::size_t turn = 128;
        constexpr std::size_t least_part = 16 * 1024;
        constexpr bool streams = has_streaming_kernel<Isa, To, From, Rounding>;
        const bool is_long = streams && count >= places * least_part;
        const std::size_t part = is_long ? count / (places * turn) * turn : 0;
        for (std::size_t i = 0; i < part; i += turn) {
            for (std::size_t place = 0; place < places; ++place) {
                piece(place * part + i, turn).template run<Isa>();
            }
        }
        piece(places * part, count - places * part).template run<Isa>();
    }

private:
    static constexpr std::size_t step = 512;

    DEMI_HOST_KERNEL block_conversion piece(std::size_t i, std::size_t elements) const {
        return {from + i, to + i, elements, rounding.from(i)};
    }

    std::size_t part_at(std::size_t i) const { return count - i < step ? count - i : step; }

    /// A float holds every number of a narrow format, so there is still one rounding.
    template <host_isa Isa>
    DEMI_HOST_KERNEL void run_through_floats() const {
        using widening = block_conversion<float, From, nearest_even>;
        using narrowing = block_conversion<To, float, Rounding, Stores>;
        alignas(cache_line_bytes) float numbers[step];
        for (std::size_t i = 0; i < count; i += step) {
            const std::size_t part = part_at(i);
            widening{from + i, numbers, part, block_rounding<nearest_even>({})}.template run<Isa>();
            narrowing{numbers, to + i, part, rounding.from(i)}.template run<Isa>();
        }
    }

    /// What has no kernel that streams is streamed from the first-level cache.
    template <host_isa Isa>
    DEMI_HOST_KERNEL void run_through_lines() const {
        using conversion = block_conversion<To, From, Rounding>;
        alignas(cache_line_bytes) std::byte lines[step * sizeof(To)];
        for (std::size_t i = 0; i < count; i += step) {
            const std::size_t part = part_at(i);
            conversion{from + i, reinterpret_cast<To*>(lines), part, rounding.from(i)}
                .template run<Isa>();
            stream_lines<Isa>(lines, reinterpret_cast<std::byte*>(to + i), part * sizeof(To));
        }
    }
};

/// A block whose places are converted by turns.
template <class Conversion>
struct turns {
    Conversion conversion;

    template <host_isa Isa>
    DEMI_HOST_KERNEL void run() const {
        conversion.template run_by_turns<Isa>();
    }
};

/// Whether an instruction that is not in `host_isa::avx512` serves the conversion.
template <class To, class From, class Rounding>
inline constexpr bool has_bfloat16_instruction = false;

#if defined(__x86_64__)
template <class To, class From>
    requires(same_format<To, bfloat16> && !same_format<From, bfloat16> && sizeof(From) <= 4)
inline constexpr bool has_bfloat16_instruction<To, From, nearest_even> = true;

/// Converts to bfloat16 with `host_isa::avx512_bf16`.
template <class To, class From>
void convert_natively(host_isa isa, const From* from, To* to, std::size_t count) {
    using block = bfloat16_block<host_isa::avx512>;
    if constexpr (std::same_as<From, float>) {
        block::convert_natively(from, to, count);
    } else {
        constexpr std::size_t step = 512;
        alignas(cache_line_bytes) float numbers[step];
        for (std::size_t i = 0; i < count; i += step) {
            const std::size_t part = count - i < step ? count - i : step;
            convert_block(isa, from + i, numbers, part, nearest_even{});
            block::convert_natively(numbers, to + i, part);
        }
    }
}
#endif

}  // namespace detail

/// Converts `count` numbers from one place to another that does not overlap it, with the given
/// instruction set, which this processor must have. `Rounding` is `nearest_even`, `toward_zero` or
/// `stochastic_block`. With `detail::streaming_stores` the target is a whole number of cache lines.
/// One pass.
template <class Stores, class To, class From, class Rounding>
[[gnu::noinline]] void convert_block(host_isa isa, const From* from, To* to, std::size_t count,
                                     Rounding rounding) {
    if constexpr (std::same_as<Rounding, stochastic_block>) {
        // The upper half of an index is the same for the whole of a block of random bits.
        const std::uint64_t left = (std::uint64_t{1} << 32) - (rounding.first & 0xffffffff);
        if (count > left) {
            // The second part may start anywhere in a cache line: neither is streamed.
            convert_block(isa, from, to, static_cast<std::size_t>(left), rounding);
            return convert_block(isa, from + left, to + left, count - left,
                                 stochastic_block{rounding.key, rounding.first + left});
        }
    }
    // Past the caches the instruction gains nothing.
    if constexpr (!Stores::stream && detail::has_bfloat16_instruction<To, From, Rounding>) {
        if (isa == host_isa::avx512_bf16) {
            return detail::convert_natively(isa, from, to, count);
        }
    }
    using block_rounding = detail::block_rounding<Rounding>;
    using conversion = detail::block_conversion<To, From, Rounding, Stores>;
    const conversion block{from, to, count, block_rounding(rounding)};
    if constexpr (Stores::stream) {
        detail::run_on(isa, detail::turns<conversion>{block});
    } else {
        detail::run_on(isa, block);
    }
}

}  // namespace demi::inline DEMI_ABI
