// SPDX-License-Identifier: MIT
/// One operand of a pass, seen as packs of the number type that the functor takes.
#pragma once

#include <demi/core/operand.hpp>
#include <demi/host/block_convert.hpp>
#include <demi/host/detail/dispatch.hpp>
#include <demi/host/detail/pack_memory.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {
namespace detail {

/// Elements that are converted at a time: they stay in the first-level cache.
inline constexpr std::size_t block_elements = 512;

/// The scalar that a pass computes in: double as soon as one operand is.
template <class... Operands>
using scalar_of_pass = std::conditional_t<
    (std::same_as<std::remove_const_t<typename Operands::element_type>, double> || ...), double,
    float>;

/// What a functor is given for an operand: a value, or a reference.
template <class Pack, class Operand>
using argument_of = std::conditional_t<Operand::mode == access::read, Pack, Pack&>;

/// The key of one tensor's random bits, where the rounding needs any.
template <class Rounding>
Rounding block_rounding_for(Rounding rounding, std::size_t, std::size_t) {
    return rounding;
}

inline stochastic_block block_rounding_for(stochastic rounding, std::size_t tensor,
                                           std::size_t index) {
    return {random_key(rounding.seed, rounding.step, tensor), index};
}

inline stochastic_block block_rounding_for(const stochastic_by_counter& rounding,
                                           std::size_t tensor, std::size_t index) {
    return block_rounding_for(rounding.load(), tensor, index);
}

/// Numbers of an operand in memory, as packs. It is passed by value: so compilers see that no store
/// of a pass moves it, and keep the address in a register.
template <class Pack, class Operand, class Stored>
struct operand_numbers {
    using memory = pack_memory<Pack, Stored, decltype(Operand::rounding)>;

    Stored* numbers;

    DEMI_HOST_KERNEL Pack load(std::size_t i) const {
        if constexpr (Operand::mode != access::write) {
            return memory::load(numbers + i);
        } else {
            return Pack{};
        }
    }

    DEMI_HOST_KERNEL void store(std::size_t i, const Pack& value) const {
        if constexpr (Operand::mode != access::read) memory::store(numbers + i, value);
    }
};

/// Moves part of one tensor through numbers of a pass.
///
/// Formats that packs can be loaded from are worked on in place, others in a block of converted
/// numbers. The rest of a tensor that does not fill a pack goes through the block too, filled up
/// with copies of its last element: so every element is computed in the same way, wherever it is.
template <class Pack, class Operand>
class operand_window {
    using element = std::remove_const_t<typename Operand::element_type>;
    using rounding = decltype(Operand::rounding);
    using memory = pack_memory<Pack, element, rounding>;
    using scalar = typename pack_traits<Pack>::scalar;
    using stored = std::conditional_t<memory::direct, element, scalar>;
    using numbers = operand_numbers<Pack, Operand, stored>;

    static constexpr bool reads = Operand::mode != access::write;
    static constexpr bool writes = Operand::mode != access::read;
    static constexpr std::size_t pack_count = pack_traits<Pack>::count;
    static constexpr std::size_t capacity = memory::direct ? pack_count : block_elements;

public:
    static constexpr bool direct = memory::direct;

    operand_window(host_isa isa, const Operand& operand, std::size_t tensor)
        : memory_(operand.tensors[tensor].data()),
          tensor_(tensor),
          rounding_(operand.rounding),
          isa_(isa) {}

    /// Gets `count` elements, a multiple of the pack, from `index` on.
    numbers open(std::size_t index, std::size_t count) {
        if constexpr (memory::direct) {
            return {const_cast<stored*>(memory_ + index)};
        } else {
            if constexpr (reads) read_block(index, count);
            return {block()};
        }
    }

    /// Puts back what `open` got.
    void close(std::size_t index, std::size_t count) {
        if constexpr (writes && !memory::direct) write_block(index, count);
    }

    /// Gets fewer elements than a pack has.
    numbers open_rest(std::size_t index, std::size_t count) {
        if constexpr (reads) {
            read_block(index, count);
            for (std::size_t i = count; i < pack_count; ++i) {
                __builtin_memcpy(block() + i, block() + count - 1, sizeof(stored));
            }
        }
        return {block()};
    }

    void close_rest(std::size_t index, std::size_t count) {
        if constexpr (writes) write_block(index, count);
    }

private:
    stored* block() { return reinterpret_cast<stored*>(bytes_); }

    void read_block(std::size_t index, std::size_t count) {
        if constexpr (memory::direct) {
            __builtin_memcpy(bytes_, memory_ + index, count * sizeof(stored));
        } else {
            convert_block(isa_, memory_ + index, block(), count, nearest_even{});
        }
    }

    void write_block(std::size_t index, std::size_t count) {
        if constexpr (memory::direct) {
            __builtin_memcpy(static_cast<void*>(memory_ + index), bytes_, count * sizeof(stored));
        } else {
            convert_block(isa_, block(), memory_ + index, count,
                          block_rounding_for(rounding_, tensor_, index));
        }
    }

    typename Operand::element_type* memory_;
    std::size_t tensor_;
    rounding rounding_;
    host_isa isa_;
    alignas(64) std::byte bytes_[capacity * sizeof(stored)];
};

}  // namespace detail
}  // namespace demi::inline DEMI_ABI
