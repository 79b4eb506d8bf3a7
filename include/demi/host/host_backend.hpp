// SPDX-License-Identifier: MIT
/// The backend that works in host memory, on the threads of an executor.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/host/gemm.hpp>
#include <demi/host/host_buffer.hpp>
#include <demi/host/host_context.hpp>
#include <demi/host/host_packed_matrix.hpp>
#include <demi/host/matrix_cast.hpp>
#include <demi/host/reduce.hpp>
#include <demi/host/transform.hpp>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <optional>
#include <utility>

namespace demi::inline DEMI_ABI {

struct host_settings {
    /// At most this many threads; 0 for as many as the executor has.
    std::size_t threads = 0;
    /// Whose threads to use; empty for `default_executor()`.
    host_executor executor = {};
    /// Where buffers and workspaces come from; null for the default resource. It must outlive the
    /// backend, its copies and its buffers, and be safe to use from every thread that uses these.
    std::pmr::memory_resource* memory = nullptr;
    /// Which instruction set to use; empty for `default_host_isa()`.
    std::optional<host_isa> isa = {};
};

/// Models `backend` in host memory: every member returns when its work is done.
///
/// Results of `transform` and `reduce` are the same bits for any number of threads. Copies share
/// one executor. Members may be called from several threads at once.
class host_backend {
public:
    template <class T>
    using buffer = host_buffer<T>;

    /// A value that was ready from the start.
    template <class T>
    class deferred {
    public:
        explicit deferred(const T& value) : value_(value) {}
        T get() const { return value_; }

    private:
        T value_;
    };

    host_backend() : host_backend(host_settings{}) {}

    /// Throws `invalid_argument` for an instruction set that this processor does not have, or an
    /// executor without a function or without concurrency.
    explicit host_backend(host_settings settings)
        : executor_(std::make_shared<const host_executor>(make_executor(settings))),
          memory_(settings.memory != nullptr ? settings.memory : std::pmr::get_default_resource()),
          isa_(checked_isa(settings.isa)) {}

    host_isa isa() const noexcept { return isa_; }
    std::size_t concurrency() const noexcept { return executor_->concurrency; }
    std::pmr::memory_resource* memory() const noexcept { return memory_; }

    /// What kernels of one's own need.
    host_context context() const noexcept { return {isa_, executor_.get(), memory_}; }

    template <class T>
    buffer<T> make_buffer(std::size_t count) const {
        return buffer<T>(count, memory_);
    }

    template <class T>
    void upload(const T* host, T* backend_memory, std::size_t count) const {
        copy(host, backend_memory, count);
    }

    template <class T>
    void download(const T* backend_memory, T* host, std::size_t count) const {
        copy(backend_memory, host, count);
    }

    template <class T>
    deferred<T> read(const T* pointer) const {
        return deferred<T>(*pointer);
    }

    template <class Task>
    void invoke(const Task& task) const {
        task();
    }

    template <class Functor, class... Operands>
    void transform(const Functor& functor, const Operands&... operands) const {
        detail::host_transform(context(), functor, operands...);
    }

    template <class Reducer, class... Operands>
    void reduce(typename Reducer::value_type* result, const Reducer& reducer,
                const Operands&... operands) const {
        detail::host_reduce(context(), result, reducer, operands...);
    }

    template <class Reducer, class... Operands>
    void reduce_each(typename Reducer::value_type* values, const Reducer& reducer,
                     const Operands&... operands) const {
        detail::host_reduce_each(context(), values, reducer, operands...);
    }

    template <class From, class To, class Rounding>
    void cast_matrix(matrix_view<const From> from, matrix_view<To> to, Rounding rounding) const {
        detail::host_cast_matrix(context(), from, to, rounding);
    }

    template <class A, class B, class C, class Epilogue>
    void gemm(float alpha, matrix_view<const A> a, matrix_view<const B> b, float beta,
              matrix_view<C> c, const Epilogue& epilogue) const {
        detail::host_gemm(context(), alpha, a, b, beta, c, epilogue);
    }

    /// Packs an operand of later products with a matrix of `Partner`, for results of that layout.
    template <class Partner, class T>
        requires(!std::same_as<T, double> && !std::same_as<Partner, double>)
    host_packed_matrix pack(const matrix_view<const T>& matrix, operand_side side, layout result)
    const { return host_packed_matrix::make<Partner>(context(), matrix, side, result); }

    /// The same product, bit for bit, with one operand read from its packed form. Throws
    /// `invalid_argument` when that was packed for another instruction set or layout of results.
    template <class A, class B, class C, class Epilogue>
        requires(!std::same_as<C, double>)
    void gemm(float alpha, matrix_view<const A> a, matrix_view<const B> b, float beta,
              matrix_view<C> c, const Epilogue& epilogue, const host_packed_matrix& packed) const {
        detail::require_packed_for(packed, detail::product_isa<A, B>(isa_), c.order());
        const detail::packed_panels panels = packed.panels();
        const bool left = packed.side() == operand_side::left;
        detail::host_gemm(context(), alpha, a, b, beta, c, epilogue,
                          {left ? &panels : nullptr, left ? nullptr : &panels});
    }

    /// The products of a batch: each on one thread when there are enough of them.
    template <class Batch, class Epilogue>
    void gemm_batched(float alpha, const Batch& batch, float beta, const Epilogue& epilogue) const {
        const bool enough = batch.size() > 1 && batch.size() >= concurrency();
        const host_context one{isa_, enough ? nullptr : executor_.get(), memory_};
        const auto product = [&](std::size_t i) {
            detail::host_gemm(one, alpha, batch.a(i), batch.b(i), beta, batch.c(i), epilogue);
        };
        if (enough && concurrency() > 1) {
            executor_->run(batch.size(), product);
        } else {
            for (std::size_t i = 0; i < batch.size(); ++i) product(i);
        }
    }

private:
    static host_executor make_executor(host_settings& settings) {
        const host_executor& given = settings.executor;
        if (given.run == nullptr && given.concurrency == 1) {
            return limit(default_executor(), settings.threads);
        }
        if (given.run == nullptr || given.concurrency == 0) {
            detail::raise(invalid_argument(
                detail::message("host_settings: executor with concurrency ", given.concurrency,
                                given.run == nullptr ? " and no function" : "",
                                ", expected a function and at least 1")));
        }
        return limit(std::move(settings.executor), settings.threads);
    }

    static host_executor limit(host_executor executor, std::size_t threads) {
        return threads == 0 ? executor : limit_concurrency(std::move(executor), threads);
    }

    static host_isa checked_isa(std::optional<host_isa> wanted) {
        if (!wanted) return default_host_isa();
        if (*wanted > detected_host_isa()) {
            detail::raise(invalid_argument(detail::message(
                "host_settings: instruction set ", name(*wanted), ", expected at most ",
                name(detected_host_isa()), " on this processor")));
        }
        return *wanted;
    }

    template <class T>
    static void copy(const T* from, T* to, std::size_t count) {
        static_assert(std::is_trivially_copyable_v<T>);
        if (count != 0) std::memmove(static_cast<void*>(to), from, count * sizeof(T));
    }

    std::shared_ptr<const host_executor> executor_;
    std::pmr::memory_resource* memory_;
    host_isa isa_;
};

static_assert(backend<host_backend>);

}  // namespace demi::inline DEMI_ABI
