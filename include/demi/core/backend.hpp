// SPDX-License-Identifier: MIT
/// The backend concept: where the work runs.
#pragma once

#include <demi/core/matrix_view.hpp>
#include <demi/core/operand.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace demi::inline DEMI_ABI {

class host_backend;  // host/host_backend.hpp; the default backend of the training components

/// Where one value of a GEMM result stands. A pack of lanes is one row and consecutive columns,
/// `column` being that of its first lane.
struct matrix_position {
    std::size_t row = 0;
    std::size_t column = 0;
};

/// The epilogue that changes nothing.
struct no_epilogue {
    template <class Real>
    DEMI_HD Real operator()(Real value, matrix_position) const {
        return value;
    }
};

/// Which factor of a product a matrix is.
enum class operand_side : std::uint8_t { left, right };

namespace detail {

struct archetype_task {
    DEMI_HD void operator()() const {}
};

struct archetype_transform {
    template <class Real>
    DEMI_HD void operator()(Real, Real&) const {}
};

struct archetype_reducer {
    using value_type = float;
    template <class Real>
    struct partial {
        Real sum{};
    };
    template <class Real>
    DEMI_HD void accumulate(partial<Real>& into, Real value) const {
        into.sum = into.sum + value;
    }
    template <class Real>
    DEMI_HD void join(partial<Real>& into, const partial<Real>& other) const {
        into.sum = into.sum + other.sum;
    }
    template <class Real>
    DEMI_HD value_type finish(const partial<Real>&) const {
        return 0;
    }
    DEMI_HD value_type combine(value_type left, value_type right) const { return left + right; }
};

}  // namespace detail

/// A place where work runs: `host_backend`, `cuda_backend`, or an engine's own type.
///
/// A backend is a cheap handle with const members: it is copied by value into the objects that use
/// it, and work given to copies of one handle runs in the order in which it was given. A model `B`
/// provides
///
/// 1. `B::buffer<T>`, a movable owner of elements in the backend's memory with `data()` and
///    `size()`, and `make_buffer<T>(count)`, which returns one filled with zero bytes and throws
///    `out_of_memory` when it cannot. `T` is trivially copyable. State lives there: a value that
///    the next pass needs, such as a loss scale, is a buffer of one element.
/// 2. `upload(host, backend_memory, count)` and `download(backend_memory, host, count)`, which
///    return after the elements are copied: for set-up, checkpoints and tests, never within a step.
/// 3. `read(pointer)`, which gives `B::deferred<T>`: a copy of the value as it is at this point of
///    the order. Only its `get()` waits for the backend.
/// 4. `invoke(task)`, which runs `task()` once where buffers can be read and written.
/// 5. `transform(functor, operands...)`, which calls `functor(values...)` for the elements of each
///    index of each tensor: a value for an `in` operand, a reference for `out` and `inout`. All
///    operands have the same shape. The number type is the backend's choice, `float` or a pack of
///    lanes for a functor that is a template, `float` otherwise (`double` when any operand is
///    double). A functor may have two more members. `auto load() const` is called where the work
///    runs and gives the functor to use: so it can hold pointers to buffers, and be told by device
///    memory what to do. `bool skip() const`, asked after that, ends the pass before it touches
///    memory. A functor that only copies its first operand to its second may say so by
///    `static constexpr bool copies = true`; it may then not be called.
/// 6. `reduce(result, reducer, operands...)` for `in` operands, which writes `*result` in the
///    backend's memory; see `lane_reducer`. The result is the same bits for any number of threads.
/// 7. `gemm(alpha, a, b, beta, c, epilogue)`, which computes
///    `c = epilogue(alpha * a * b + beta * c)`, accumulates in float or wider, does not read `c`
///    when `beta` is 0, and gives `beta * c` for an empty inner dimension. See kernels/gemm.hpp.
/// 8. Optional: `pack<Partner>(matrix, side, result)`, which returns a value that holds a matrix in
///    the form that products read best, and `gemm(alpha, a, b, beta, c, epilogue, packed)`, which
///    takes that for one of the operands. See kernels/packed_matrix.hpp.
/// 9. Optional: `gemm_batched(alpha, batch, beta, epilogue)` for the products `batch.c(i)` of
///    `batch.a(i)` and `batch.b(i)`, `i` below `batch.size()`. See kernels/gemm_batched.hpp.
/// 10. Optional: `reduce_each(values, reducer, operands...)`, which writes what `reduce` gives for
///    each tensor alone, `values[i]` for tensor i; `inspect` is told its place in the whole list.
///    See kernels/reduce.hpp.
///
/// Arguments have been checked when a member is called through the front doors in kernels/.
template <class B>
concept backend = std::copyable<B> &&
    requires(const B& where, float* memory, const float* constant, std::size_t count,
             const operand<const float, access::read>& input,
             const operand<float, access::update>& inplace, matrix_view<const float> a,
             matrix_view<float> c) {
    {
        where.template make_buffer<float>(count)
        } -> std::same_as<typename B::template buffer<float>>;
    { where.template make_buffer<float>(count).data() } -> std::same_as<float*>;
    where.upload(constant, memory, count);
    where.download(constant, memory, count);
    { where.read(constant) } -> std::same_as<typename B::template deferred<float>>;
    { where.read(constant).get() } -> std::convertible_to<float>;
    where.invoke(detail::archetype_task{});
    where.transform(detail::archetype_transform{}, input, inplace);
    where.reduce(memory, detail::archetype_reducer{}, input);
    where.gemm(1.0f, a, a, 0.0f, c, no_epilogue{});
};

/// A reduction as a set of small functions over a number type.
///
/// 1. `value_type`: trivially copyable; its default value is the identity of `combine`.
/// 2. `partial<Real>`: what a pass keeps per lane; its default value is the identity.
/// 3. `accumulate(partial<Real>&, Real...)`: takes in one element of each operand.
/// 4. `join(partial<Real>&, const partial<Real>&)`: adds a second partial to the first, lane by
///    lane.
/// 5. `value_type finish(const partial<Real>&)`: folds the lanes of a partial.
/// 6. `value_type combine(value_type, value_type)`: associative up to rounding; called in an order
///    that depends on the shapes only.
/// 7. Optional: `bool wants_inspection(const value_type&)` and
///    `void inspect(value_type&, element_position, Real...)`: when the first says so of the value
///    of one block, the second sees each of its elements with its place. That keeps rare questions,
///    such as where the first NaN is, out of the fast path.
/// 8. Optional: `quick`, a type of another reducer with the same `value_type`, and
///    `bool confirms(const value_type&)`. A backend may then reduce a block with `quick{}`, at most
///    16 elements per lane, and keep its value if `confirms` says so; if not, it reduces the block
///    as before. That is for sums in a number type of which most blocks, but not all, need no more.
///    `quick` may be given packs of elements as they are stored, two in each lane. On a device each
///    thread decides for its own few elements: `bool absorb(partial<Real>&, const
///    quick::partial<Real>&)` takes them in, or says that they must be reduced as before.
template <class R, class Real>
concept lane_reducer = std::default_initializable<typename R::value_type> &&
    requires(const R& reducer, typename R::template partial<Real>& partial, Real value,
             const typename R::value_type& result) {
    reducer.accumulate(partial, value);
    reducer.join(partial, partial);
    { reducer.finish(partial) } -> std::same_as<typename R::value_type>;
    { reducer.combine(result, result) } -> std::same_as<typename R::value_type>;
};

}  // namespace demi::inline DEMI_ABI
