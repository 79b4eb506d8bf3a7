// SPDX-License-Identifier: MIT
/// Many products of the same kind in one call.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/core/matrix_view.hpp>
#include <demi/kernels/gemm.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace demi::inline DEMI_ABI {

/// Matrices of one shape, `stride` elements apart in one memory; 0 for the same one each time.
template <class T>
class strided_matrices {
public:
    strided_matrices(const matrix_view<T>& first, std::size_t stride, std::size_t count)
        : first_(first), stride_(stride), count_(count) {}

    std::size_t size() const noexcept { return count_; }
    matrix_view<T> operator[](std::size_t i) const {
        return {first_.data() + i * stride_, first_.rows(), first_.columns(),
                first_.leading_dimension(), first_.order()};
    }

private:
    matrix_view<T> first_;
    std::size_t stride_;
    std::size_t count_;
};

namespace detail {

/// The products of a batch, as a backend sees them.
template <class As, class Bs, class Cs>
struct gemm_batch {
    const As& as;
    const Bs& bs;
    const Cs& cs;

    std::size_t size() const { return cs.size(); }
    auto a(std::size_t i) const { return constant(as[i]); }
    auto b(std::size_t i) const { return constant(bs[i]); }
    auto c(std::size_t i) const { return cs[i]; }

private:
    template <class T>
    static matrix_view<const std::remove_const_t<T>> constant(const matrix_view<T>& matrix) {
        return matrix;
    }
};

inline void require_batch_size(std::string_view name, std::size_t size, std::size_t expected) {
    if (size == expected) return;
    raise(invalid_argument(message("gemm_batched: ", size, " matrices ", name, ", expected ",
                                   expected, " as there are results")));
}

template <class B, class Batch, class Epilogue>
void run_batch(B& where, const Batch& batch, const gemm_options& options,
               const Epilogue& function) {
    require_batch_size("a", batch.as.size(), batch.size());
    require_batch_size("b", batch.bs.size(), batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
        require_product(batch.a(i), batch.b(i), batch.c(i), options, function);
    }
    if constexpr (requires { where.gemm_batched(options.alpha, batch, options.beta, function); }) {
        where.gemm_batched(options.alpha, batch, options.beta, function);
    } else {
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (batch.c(i).empty()) continue;
            where.gemm(options.alpha, batch.a(i), batch.b(i), options.beta, batch.c(i), function);
        }
    }
}

}  // namespace detail

/// `gemm` for each triple of matrices; the shapes may differ.
///
/// Throws `invalid_argument` as `gemm` does, or for lists of different lengths, before anything is
/// written. When the workspace is refused, `out_of_memory` leaves some results written, others not.
/// No result may share memory with another or with any operand; each is checked against its own.
/// Cost: the products run at the same time where there are at least as many as threads; the bits
/// are those of single calls, but for the rounding of sums over a long inner dimension, which a
/// device divides by the number of products too.
template <backend B, class Left, class Right, floating_format Result,
          epilogue Epilogue = no_epilogue>
void gemm_batched(const B& where, std::span<const matrix_view<Left>> a,
                  std::span<const matrix_view<Right>> b, std::span<const matrix_view<Result>> c,
                  const gemm_options& options = {}, const Epilogue& function = {}) {
    using views = detail::gemm_batch<decltype(a), decltype(b), decltype(c)>;
    B handle = where;
    detail::run_batch(handle, views{a, b, c}, options, function);
}

/// The same for matrices at equal distances: `gemm_batched(where, strided_matrices(...), ...)`.
/// Throws `invalid_argument` also for results that overlap each other.
template <backend B, class Left, class Right, floating_format Result,
          epilogue Epilogue = no_epilogue>
void gemm_batched(const B& where, const strided_matrices<Left>& a, const strided_matrices<Right>& b,
                  const strided_matrices<Result>& c, const gemm_options& options = {},
                  const Epilogue& function = {}) {
    if (c.size() > 1 && detail::overlap(c[0], c[1])) {
        detail::raise(invalid_argument(detail::message(
            "gemm_batched: results of ", c[0].rows(), " x ", c[0].columns(), " are only ",
            c[1].data() - c[0].data(), " elements apart, expected separate memory")));
    }
    using views = detail::gemm_batch<strided_matrices<Left>, strided_matrices<Right>,
                                     strided_matrices<Result>>;
    B handle = where;
    detail::run_batch(handle, views{a, b, c}, options, function);
}

}  // namespace demi::inline DEMI_ABI
