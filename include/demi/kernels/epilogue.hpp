// SPDX-License-Identifier: MIT
/// What a GEMM does to each value of its result before storing it.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/core/detail/epilogue_worker.hpp>
#include <demi/core/real.hpp>
#include <demi/core/tensor.hpp>
#include <demi/kernels/activation.hpp>
#include <demi/precision/convert.hpp>

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace demi::inline DEMI_ABI {

/// A function of one value of a GEMM result and its place, called once per element.
///
/// It takes `(float, matrix_position)`. When it is a template over the number type it may also be
/// handed a pack of lanes, which is one row and consecutive columns that are all inside the matrix,
/// or a double. An optional `void require_shape(rows, columns) const` is called with the shape of
/// the result before anything is computed, and throws when it does not fit.
///
/// A device calls it from many threads, and an epilogue may keep something in each of them by an
/// optional pair. `auto begin() const`, which has no effects, gives a worker that one thread calls
/// instead, for none or more values; its call operator need not be const, and it may refer to the
/// epilogue. Then the threads of a warp call `worker.end()` together, each of them once, so that it
/// may use shuffles of all 32; but no barriers, for a warp whose threads were given no value may
/// leave it out. Where no worker is begun, as on the host, the epilogue itself is called, which
/// must come to the same.
template <class E>
concept epilogue = std::copy_constructible<E> &&
    requires(const E& function, float value, matrix_position at) {
    { function(value, at) } -> std::convertible_to<float>;
};

namespace detail {

template <class E, class Real>
concept epilogue_on = requires(const E& function, Real value, matrix_position at) {
    { function(value, at) } -> std::convertible_to<Real>;
};

/// Reads one element, or one per lane from elements that lie `stride` apart.
template <class Real, class T>
DEMI_HD Real load_as(const T* from, std::size_t stride) {
    if constexpr (scalar_real<Real>) {
        return convert<Real>(*from);
    } else {
        if constexpr (std::same_as<T, float>) {
            if (stride == 1) return Real::load(from);
        }
        float values[Real::count];
        for (std::size_t i = 0; i < Real::count; ++i) values[i] = convert<float>(from[i * stride]);
        return Real::load(values);
    }
}

template <class Real, class T>
DEMI_HD void store_as(const Real& value, T* to, std::size_t stride) {
    if constexpr (scalar_real<Real>) {
        *to = convert<T>(value);
    } else {
        if constexpr (std::same_as<T, float>) {
            if (stride == 1) return value.store(to);
        }
        float values[Real::count];
        value.store(values);
        for (std::size_t i = 0; i < Real::count; ++i) to[i * stride] = convert<T>(values[i]);
    }
}

inline void require_epilogue_shape(std::string_view who, std::size_t rows, std::size_t columns,
                                   std::size_t expected_rows, std::size_t expected_columns) {
    if (rows == expected_rows && columns == expected_columns) return;
    raise(invalid_argument(message(who, ": matrix of ", rows, " x ", columns, ", expected ",
                                   expected_rows, " x ", expected_columns, " as the result")));
}

}  // namespace detail

/// Adds one value per column: `bias(vector)` for any tensor, `bias(pointer)` unchecked.
template <class T>
class bias {
public:
    explicit bias(const T* values) : values_(values) {}

    template <tensor Tensor>
    explicit bias(const Tensor& values)
        : values_(demi::view(values).data()), size_(demi::view(values).size()), sized_(true) {}

    template <class Real>
    DEMI_HD Real operator()(Real value, matrix_position at) const {
        return value + detail::load_as<Real>(values_ + at.column, 1);
    }

    void require_shape(std::size_t, std::size_t columns) const {
        if (!sized_ || size_ == columns) return;
        detail::raise(invalid_argument(detail::message("bias: ", size_, " values, expected ",
                                                       columns, ", one per column of the result")));
    }

private:
    const T* values_;
    std::size_t size_ = 0;
    bool sized_ = false;
};

template <tensor Tensor>
bias(const Tensor&) -> bias<std::remove_const_t<element_of<const Tensor&>>>;

/// Multiplies by a factor.
struct scale {
    float factor = 1;

    template <class Real>
    DEMI_HD Real operator()(Real value, matrix_position) const {
        return value * static_cast<Real>(factor);
    }
};

/// Writes the value into a matrix as it passes, rounded to that matrix's format: what the backward
/// pass needs to see of the inside of a fused layer. The matrix must not overlap the operands.
template <class T>
class store {
public:
    explicit store(const matrix_view<T>& target) : target_(target) {}

    template <class Real>
    DEMI_HD Real operator()(Real value, matrix_position at) const {
        detail::store_as(value, &target_(at.row, at.column), target_.column_stride());
        return value;
    }

    void require_shape(std::size_t rows, std::size_t columns) const {
        detail::require_epilogue_shape("store", target_.rows(), target_.columns(), rows, columns);
    }

private:
    matrix_view<T> target_;
};

/// Multiplies by the derivative of an activation at the pre-activation that `store` kept.
template <class Activation, class T>
class activation_gradient {
public:
    explicit activation_gradient(const matrix_view<const T>& before) : before_(before) {}

    template <class Real>
    DEMI_HD Real operator()(Real value, matrix_position at) const {
        return value * Activation::derivative(detail::load_as<Real>(&before_(at.row, at.column),
                                                                    before_.column_stride()));
    }

    void require_shape(std::size_t rows, std::size_t columns) const {
        detail::require_epilogue_shape("activation_gradient", before_.rows(), before_.columns(),
                                       rows, columns);
    }

private:
    matrix_view<const T> before_;
};

template <class T>
auto relu_gradient(const matrix_view<T>& before) {
    return activation_gradient<relu, std::remove_const_t<T>>(before);
}

template <class T>
auto gelu_gradient(const matrix_view<T>& before) {
    return activation_gradient<gelu, std::remove_const_t<T>>(before);
}

namespace detail {

template <class Worker, class Real>
concept worker_on = requires(Worker& worker, Real value, matrix_position at) {
    { worker(value, at) } -> std::convertible_to<Real>;
};

/// The workers of two epilogues, or of one and the other as it is.
template <class First, class Second>
struct composed_worker {
    epilogue_worker<First> first;
    epilogue_worker<Second> second;

    template <class Real>
        requires(worker_on<epilogue_worker<First>, Real>&& worker_on<epilogue_worker<Second>, Real>)
    DEMI_HD Real operator()(Real value, matrix_position at) {
        const Real between = first(value, at);
        return second(between, at);
    }

    DEMI_HD void end() {
        end_epilogue<First>(first);
        end_epilogue<Second>(second);
    }
};

}  // namespace detail

/// Two epilogues, one after the other.
template <class First, class Second>
class composed_epilogue {
public:
    composed_epilogue(const First& first, const Second& second) : first_(first), second_(second) {}

    template <class Real>
        requires(detail::epilogue_on<First, Real>&& detail::epilogue_on<Second, Real>)
    DEMI_FLATTEN DEMI_HD Real operator()(Real value, matrix_position at) const {
        const Real between = first_(value, at);
        return second_(between, at);
    }

    DEMI_HD auto begin() const
        requires(detail::begun_epilogue<First> || detail::begun_epilogue<Second>) {
        return detail::composed_worker<First, Second>{detail::begin_epilogue(first_),
                                                      detail::begin_epilogue(second_)};
    }

    void require_shape(std::size_t rows, std::size_t columns) const {
        require_shape_of(first_, rows, columns);
        require_shape_of(second_, rows, columns);
    }

private:
    template <class E>
    static void require_shape_of(const E& function, std::size_t rows, std::size_t columns) {
        if constexpr (requires { function.require_shape(rows, columns); }) {
            function.require_shape(rows, columns);
        }
    }

    First first_;
    Second second_;
};

/// The first, then the second: `bias(b) | store(z) | gelu{}`.
template <epilogue First, epilogue Second>
auto operator|(const First& first, const Second& second) {
    return composed_epilogue<First, Second>(first, second);
}

/// The same for any number of epilogues, from left to right.
template <epilogue First, epilogue... Rest>
auto then(const First& first, const Rest&... rest) {
    if constexpr (sizeof...(rest) == 0) {
        return first;
    } else {
        const auto tail = demi::then(rest...);
        return composed_epilogue<First, std::remove_const_t<decltype(tail)>>(first, tail);
    }
}

}  // namespace demi::inline DEMI_ABI
