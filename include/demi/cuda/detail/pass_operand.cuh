// SPDX-License-Identifier: MIT
/// The operands of an element-wise kernel: groups of elements on their way through registers.
#pragma once

#include <demi/core/operand.hpp>
#include <demi/cuda/detail/convert_group.cuh>
#include <demi/precision/random_bits.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI::detail {

inline constexpr unsigned pass_threads = 256;
inline constexpr std::size_t widest_access = 16;  // bytes that one thread moves at once

/// How many elements a thread takes at once: as many as the widest operand has in 16 bytes.
template <class... Operands>
inline constexpr std::size_t group_size = widest_access /
                                          std::max({sizeof(typename Operands::element_type)...});

/// The number type of a functor.
template <class... Operands>
using pass_number = std::conditional_t<
    (std::same_as<std::remove_const_t<typename Operands::element_type>, double> || ...), double,
    float>;

/// A functor or rounding as it is, or what its `load` gives where the work runs.
template <class Value>
__device__ auto loaded(const Value& value) {
    if constexpr (requires { value.load(); }) {
        return value.load();
    } else {
        return value;
    }
}

/// How the elements of one tensor are rounded.
template <class Rounding>
struct tensor_rounding {
    __device__ tensor_rounding(Rounding, std::uint32_t) {}
    __device__ auto from(std::uint64_t) const {
        return [](std::size_t) { return Rounding{}; };
    }
};

/// The random bits of the elements from `first` on.
struct stochastic_group {
    std::uint64_t key;
    std::uint64_t first;
    random_block block;

    __device__ stochastic_bits operator()(std::size_t i) const {
        const auto low = static_cast<std::uint32_t>(first + i);
        if (low >= static_cast<std::uint32_t>(first)) return {random_bits(block, low)};
        return {random_bits(key, first + i)};
    }
};

template <>
struct tensor_rounding<stochastic> {
    std::uint64_t key;

    __device__ tensor_rounding(const stochastic& rounding, std::uint32_t tensor)
        : key(random_key(rounding.seed, rounding.step, tensor)) {}
    __device__ stochastic_group from(std::uint64_t index) const {
        return {key, index, make_random_block(key, static_cast<std::uint32_t>(index >> 32))};
    }
};

/// `Place` tells values of one type apart.
template <std::size_t Place, class Value>
struct placed {
    Value value;
};

/// The roundings of all operands.
template <class Places, class... Rounding>
struct placed_roundings;

template <std::size_t... Place, class... Rounding>
struct placed_roundings<std::index_sequence<Place...>, Rounding...> : placed<Place, Rounding>... {
    template <class Operand>
    using of_one = tensor_rounding<std::remove_cvref_t<decltype(loaded(std::declval<Operand>()))>>;

    /// Those for the elements of one tensor.
    __device__ auto of_tensor(std::uint32_t tensor) const {
        return placed_roundings<std::index_sequence<Place...>, of_one<Rounding>...>{
            {of_one<Rounding>(loaded(get<Place>()), tensor)}...};
    }

    template <std::size_t Index>
    __device__ const auto& get() const {
        return at<Index>(*this);
    }

private:
    template <std::size_t Index, class Value>
    __device__ static const Value& at(const placed<Index, Value>& one) {
        return one.value;
    }
};

/// As they travel to the device.
template <class... Operands>
using pass_roundings =
    placed_roundings<std::index_sequence_for<Operands...>, typename Operands::rounding_type...>;

template <class T, std::size_t Size>
struct alignas(Size * sizeof(T)) element_group {
    T values[Size];
};

/// Tells the compiler that a pointer is to global memory, which a pointer from a table does not
/// say.
template <class T>
__device__ T* in_global_memory(T* pointer) {
    __builtin_assume(__isGlobal(pointer));
    return pointer;
}

/// `Size` consecutive elements of one operand, in a thread's registers. `Place` tells operands of
/// one type apart.
template <std::size_t Place, class Operand, class Number, std::size_t Size>
struct held_operand {
    using element = std::remove_const_t<typename Operand::element_type>;
    using group = element_group<element, Size>;

    group stored;
    Number numbers[Size];

    __device__ void read(const void* data, std::uint64_t index) {
        if constexpr (Operand::mode != access::write) {
            const element* const from = static_cast<const element*>(data) + index;
            stored = *in_global_memory(reinterpret_cast<const group*>(from));
        }
    }

    __device__ void widen_all() {
        if constexpr (Operand::mode != access::write) {
            convert_group(stored.values, numbers, [](std::size_t) { return nearest_even{}; });
        }
    }

    /// What a functor gets: a value of what is only read, else a reference.
    __device__ decltype(auto) argument(std::size_t i) {
        if constexpr (Operand::mode == access::read) {
            return Number(numbers[i]);
        } else {
            return (numbers[i]);
        }
    }

    template <class Rounding>
    __device__ void narrow_all(const Rounding& rounding) {
        if constexpr (Operand::mode != access::read) {
            convert_group(numbers, stored.values, rounding);
        }
    }

    __device__ void write(void* data, std::uint64_t index) const {
        if constexpr (Operand::mode != access::read) {
            element* const to = static_cast<element*>(data) + index;
            *in_global_memory(reinterpret_cast<group*>(to)) = stored;
        }
    }
};

template <class Places, std::size_t Size, class... Operands>
struct held_operands;

/// What a thread holds of all operands for `Size` consecutive elements.
template <std::size_t... Place, std::size_t Size, class... Operands>
struct held_operands<std::index_sequence<Place...>, Size, Operands...>
    : held_operand<Place, Operands, pass_number<Operands...>, Size>... {
    __device__ void read(void* const* data, std::uint64_t index) {
        (part<Place, Operands>().read(data[Place], index), ...);
    }
    __device__ void widen_all() { (part<Place, Operands>().widen_all(), ...); }

    template <class Function>
    __device__ void call_each(const Function& function) {
#pragma unroll
        for (std::size_t i = 0; i < Size; ++i) function(part<Place, Operands>().argument(i)...);
    }

    template <class Roundings>
    __device__ void narrow_all(std::uint64_t index, const Roundings& roundings) {
        (part<Place, Operands>().narrow_all(roundings.template get<Place>().from(index)), ...);
    }
    __device__ void write(void* const* data, std::uint64_t index) const {
        (static_cast<const part_type<Place, Operands>&>(*this).write(data[Place], index), ...);
    }

private:
    template <std::size_t Index, class Operand>
    using part_type = held_operand<Index, Operand, pass_number<Operands...>, Size>;

    template <std::size_t Index, class Operand>
    __device__ part_type<Index, Operand>& part() {
        return *this;
    }
};

template <std::size_t Size, class... Operands>
using held = held_operands<std::index_sequence_for<Operands...>, Size, Operands...>;

/// Converts the elements of the first of two operands straight to the format of the second.
template <std::size_t Size, class From, class To, class Roundings>
__device__ void copy_first_to_second(held<Size, From, To>& held, std::uint64_t index,
                                     const Roundings& roundings) {
    using number = pass_number<From, To>;
    convert_group(static_cast<held_operand<0, From, number, Size>&>(held).stored.values,
                  static_cast<held_operand<1, To, number, Size>&>(held).stored.values,
                  roundings.template get<1>().from(index));
}

}  // namespace demi::inline DEMI_ABI::detail
