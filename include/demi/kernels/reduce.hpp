// SPDX-License-Identifier: MIT
/// The checked front door to a backend's reduction, and the plain sum.
#pragma once

#include <demi/core/real.hpp>
#include <demi/kernels/transform.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI {

/// Reduces the operands with a `lane_reducer` and returns the result.
///
/// Throws `invalid_argument` when the shapes differ. Cost: one pass; waits for the backend. The
/// result is the same bits for any number of threads.
template <backend B, class Reducer, class... Operands>
typename Reducer::value_type reduce(const B& where, const Reducer& reducer,
                                    const Operands&... operands) {
    detail::require_operands("reduce", operands...);
    auto result = where.template make_buffer<typename Reducer::value_type>(1);
    where.reduce(result.data(), reducer, operands...);
    return where.read(result.data()).get();
}

namespace detail {

/// A reducer that sees one tensor of a list alone.
template <class Reducer>
struct tensor_reducer : Reducer {
    std::uint64_t tensor;

    template <class... Real>
    DEMI_HD void inspect(typename Reducer::value_type& value, element_position at,
                         Real... values) const {
        Reducer::inspect(value, {tensor, at.index}, values...);
    }
};

}  // namespace detail

/// Reduces each tensor by itself: `values[i]`, in the backend's memory, becomes what `reduce` gives
/// for the operands' tensors i, the default value for one without elements.
///
/// Throws `invalid_argument` when the shapes differ, `out_of_memory` when there is no room for the
/// values of the parts. Cost: one pass; no synchronisation; on a device two launches for any number
/// of tensors. The result is the same bits for any number of threads.
template <backend B, class Reducer, class First, class... Rest>
void reduce_each(const B& where, typename Reducer::value_type* values, const Reducer& reducer,
                 const First& first, const Rest&... rest) {
    detail::require_operands("reduce_each", first, rest...);
    if constexpr (requires { where.reduce_each(values, reducer, first, rest...); }) {
        where.reduce_each(values, reducer, first, rest...);
    } else {
        const auto alone = [](auto operand, std::size_t i) {
            operand.tensors = operand.tensors.subspan(i, 1);
            return operand;
        };
        for (std::size_t i = 0; i < first.tensors.size(); ++i) {
            where.reduce(values + i, detail::tensor_reducer<Reducer>{reducer, i}, alone(first, i),
                         alone(rest, i)...);
        }
    }
}

/// A reducer that adds up `map(values...)` in double precision.
template <class Map>
struct sum_of {
    using value_type = double;

    template <class Real>
    struct partial {
        typename real_traits<Real>::wide sum{};
    };

    Map map;

    template <class Real, std::same_as<Real>... Rest>
        requires(std::invocable<const Map&, Real, Rest...>)
    DEMI_FLATTEN DEMI_HD void accumulate(partial<Real>& into, const Real& first,
                                         const Rest&... rest) const {
        into.sum = into.sum + widen(Real(map(first, rest...)));
    }
    template <class Real>
    DEMI_HD void join(partial<Real>& into, const partial<Real>& other) const {
        into.sum = into.sum + other.sum;
    }
    template <class Real>
    DEMI_HD value_type finish(const partial<Real>& from) const {
        return sum_lanes(from.sum);
    }
    DEMI_HD value_type combine(value_type left, value_type right) const { return left + right; }
};

template <class Map>
sum_of(Map) -> sum_of<Map>;

}  // namespace demi::inline DEMI_ABI
