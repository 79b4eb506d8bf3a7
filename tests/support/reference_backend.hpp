// SPDX-License-Identifier: MIT
/// The smallest readable model of a backend: plain loops, one thread, nothing fast.
///
/// It shows that an engine's own type can be a backend, and is the independent reference for
/// `host_backend`. It knows the core and precision rooms only.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/precision/convert.hpp>
#include <demi/precision/random_bits.hpp>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace reference {

/// `double` when any element type is double, else `float`.
template <class... T>
using real_for =
    std::conditional_t<(std::same_as<std::remove_const_t<T>, double> || ...), double, float>;

/// Rounds one value to the format of a list, as the rounding of the list says.
template <class T, class Real, class Rounding>
T rounded(Real value, const Rounding& rounding, std::size_t tensor, std::size_t index) {
    if constexpr (requires { rounding.load(); }) {
        return rounded<T>(value, rounding.load(), tensor, index);
    } else if constexpr (std::same_as<Rounding, demi::stochastic>) {
        const auto key = demi::random_key(rounding.seed, rounding.step, tensor);
        return demi::convert<T>(value, demi::stochastic_bits{demi::random_bits(key, index)});
    } else {
        return demi::convert<T>(value, rounding);
    }
}

/// One value of one operand while a functor works on it.
template <class Real, class Operand>
class slot {
    using element = typename Operand::element_type;
    static constexpr bool reads = Operand::mode != demi::access::write;
    static constexpr bool writes = Operand::mode != demi::access::read;

public:
    slot(const Operand& operand, std::size_t tensor, std::size_t index)
        : operand_(operand), tensor_(tensor), index_(index) {
        if constexpr (reads) value_ = demi::convert<Real>(operand.tensors[tensor][index]);
    }

    /// A value for an operand that is read, a reference for one that is written.
    decltype(auto) argument() {
        if constexpr (writes) {
            return static_cast<Real&>(value_);
        } else {
            return static_cast<Real>(value_);
        }
    }

    void store() {
        if constexpr (writes) {
            operand_.tensors[tensor_][index_] =
                rounded<element>(value_, operand_.rounding, tensor_, index_);
        }
    }

private:
    const Operand& operand_;
    std::size_t tensor_;
    std::size_t index_;
    Real value_{};
};

template <class Functor>
auto loaded(const Functor& functor) {
    if constexpr (requires { functor.load(); }) {
        return functor.load();
    } else {
        return functor;
    }
}

template <class First, class... Rest>
const auto& shape_of(const First& first, const Rest&...) {
    return first.tensors;
}

}  // namespace reference

class reference_backend {
public:
    template <class T>
    class buffer {
    public:
        explicit buffer(std::size_t count) : memory_(new T[count]), size_(count) {
            std::memset(static_cast<void*>(data()), 0, count * sizeof(T));
        }
        T* data() { return memory_.get(); }
        const T* data() const { return memory_.get(); }
        std::size_t size() const { return size_; }

    private:
        std::unique_ptr<T[]> memory_;
        std::size_t size_;
    };

    template <class T>
    class deferred {
    public:
        explicit deferred(const T& value) : value_(value) {}
        T get() const { return value_; }

    private:
        T value_;
    };

    template <class T>
    buffer<T> make_buffer(std::size_t count) const {
        return buffer<T>(count);
    }

    template <class T>
    void upload(const T* host, T* memory, std::size_t count) const {
        for (std::size_t i = 0; i < count; ++i) memory[i] = host[i];
    }

    template <class T>
    void download(const T* memory, T* host, std::size_t count) const {
        for (std::size_t i = 0; i < count; ++i) host[i] = memory[i];
    }

    template <class T>
    deferred<T> read(const T* memory) const {
        return deferred<T>(*memory);
    }

    template <class Task>
    void invoke(const Task& task) const {
        task();
    }

    template <class Functor, class... Operands>
    void transform(const Functor& functor, const Operands&... operands) const {
        using real = reference::real_for<typename Operands::element_type...>;
        const auto function = reference::loaded(functor);
        if constexpr (requires { function.skip(); }) {
            if (function.skip()) return;
        }
        const auto& shape = reference::shape_of(operands...);
        for (std::size_t tensor = 0; tensor < shape.size(); ++tensor) {
            for (std::size_t i = 0; i < shape[tensor].size(); ++i) {
                std::tuple<reference::slot<real, Operands>...> slots{
                    reference::slot<real, Operands>(operands, tensor, i)...};
                std::apply([&](auto&... slot) { function(slot.argument()...); }, slots);
                std::apply([](auto&... slot) { (slot.store(), ...); }, slots);
            }
        }
    }

    /// Every tensor is one block, joined in list order.
    template <class Reducer, class... Operands>
    void reduce(typename Reducer::value_type* result, const Reducer& reducer,
                const Operands&... operands) const {
        using real = reference::real_for<typename Operands::element_type...>;
        typename Reducer::value_type total{};
        const auto& shape = reference::shape_of(operands...);
        for (std::size_t tensor = 0; tensor < shape.size(); ++tensor) {
            const auto value = [&](const auto& operand, std::size_t i) {
                return demi::convert<real>(operand.tensors[tensor][i]);
            };
            typename Reducer::template partial<real> partial{};
            for (std::size_t i = 0; i < shape[tensor].size(); ++i) {
                reducer.accumulate(partial, value(operands, i)...);
            }
            typename Reducer::value_type block = reducer.finish(partial);
            if constexpr (requires { reducer.wants_inspection(block); }) {
                if (reducer.wants_inspection(block)) {
                    for (std::size_t i = 0; i < shape[tensor].size(); ++i) {
                        reducer.inspect(block, {tensor, i}, value(operands, i)...);
                    }
                }
            }
            total = reducer.combine(total, block);
        }
        *result = total;
    }

    template <class A, class B, class C, class Epilogue>
    void gemm(float alpha, const demi::matrix_view<A>& a, const demi::matrix_view<B>& b, float beta,
              const demi::matrix_view<C>& c, const Epilogue& epilogue) const {
        using real = reference::real_for<A, B, C>;
        for (std::size_t row = 0; row < c.rows(); ++row) {
            for (std::size_t column = 0; column < c.columns(); ++column) {
                double sum = 0;
                for (std::size_t k = 0; k < a.columns(); ++k) {
                    sum += demi::convert<double>(a(row, k)) * demi::convert<double>(b(k, column));
                }
                sum *= static_cast<double>(alpha);
                if (beta != 0) {
                    sum += static_cast<double>(beta) * demi::convert<double>(c(row, column));
                }
                c(row, column) = demi::convert<C>(
                    epilogue(demi::convert<real>(sum), demi::matrix_position{row, column}));
            }
        }
    }
};

static_assert(demi::backend<reference_backend>);
