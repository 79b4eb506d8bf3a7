// SPDX-License-Identifier: MIT
/// The backend that works on a CUDA device, in the order of one stream.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/cuda/context.hpp>
#include <demi/cuda/float8_cast.cuh>
#include <demi/cuda/formats.hpp>
#include <demi/cuda/gemm.cuh>
#include <demi/cuda/gemm_batched.cuh>
#include <demi/cuda/matrix_cast.cuh>
#include <demi/cuda/reduce.cuh>
#include <demi/cuda/transform.cuh>

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

namespace demi::inline DEMI_ABI {

namespace detail {

template <class Task>
__global__ void invoke_kernel(const Task task) {
    task();
}

}  // namespace detail

/// Models `backend` on a CUDA device: every member but `upload` and `download` returns at once, and
/// its work runs in the order of the stream.
///
/// Functors, tasks, reducers and epilogues travel as bytes: their functions are `DEMI_HD`, and
/// their types have a name that a kernel can see, so not those of lambdas nor local or private
/// ones.
///
/// Products of two 8-bit matrices whose lines run along the inner dimension go to the tensor cores
/// of devices of compute capability 8.9 and newer. These keep some 14 bits of a sum of 64 products,
/// by `wgmma` of 128; such sums are added up in float.
///
/// What is called between the beginning and the end of a stream capture becomes part of the graph,
/// and its replays give the same bits. Results of `reduce` do not depend on the size of the device.
/// Copies share one context; they and their buffers are used from one thread at a time. The stream
/// must outlive them.
class cuda_backend {
public:
    template <class T>
    using buffer = cuda_buffer<T>;

    /// A value on its way to the host.
    template <class T>
    class deferred {
        static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= detail::answer_slot::bytes);

    public:
        /// Waits until the value has arrived. Of a captured read it waits for the stream, and gives
        /// the value of the last replay. Throws `cuda_error`, while the stream is being captured
        /// too.
        T get() const {
            if (in_graph_) {
                context_->stream().synchronize();
            } else {
                detail::check_cuda(cudaEventSynchronize(slot_->ready), "cudaEventSynchronize");
            }
            T value;
            std::memcpy(static_cast<void*>(&value), slot_->memory, sizeof(T));
            return value;
        }

    private:
        friend class cuda_backend;

        deferred(const std::shared_ptr<cuda_context>& context, const T* from)
            : context_(context), in_graph_(context->stream().is_capturing()) {
            const detail::answer_slot taken = context->answers().take();
            slot_ = std::shared_ptr<const detail::answer_slot>(
                new detail::answer_slot(taken), [context, in_graph = in_graph_](auto* slot) {
                    // A graph goes on writing to its places.
                    if (!in_graph) context->answers().give_back(*slot);
                    delete slot;
                });
            const cudaStream_t stream = context->stream().get();
            detail::check_cuda(
                cudaMemcpyAsync(taken.memory, from, sizeof(T), cudaMemcpyDeviceToHost, stream),
                "cudaMemcpyAsync");
            if (!in_graph_) {
                detail::check_cuda(cudaEventRecord(taken.ready, stream), "cudaEventRecord");
            }
        }

        std::shared_ptr<cuda_context> context_;
        bool in_graph_;
        std::shared_ptr<const detail::answer_slot> slot_;
    };

    /// Works on this stream of the current device, with memory from the device's default pool.
    /// Throws `cuda_error` when there is no device, `out_of_memory`.
    explicit cuda_backend(cuda_stream_ref stream)
        : cuda_backend(stream, default_memory(cuda_device::current())) {}

    /// The same with an engine's own memory.
    cuda_backend(cuda_stream_ref stream, std::shared_ptr<cuda_memory_resource> memory)
        : context_(std::make_shared<cuda_context>(stream, std::move(memory))) {}

    cuda_stream_ref stream() const noexcept { return context_->stream(); }

    /// What kernels of one's own need.
    cuda_context& context() const noexcept { return *context_; }

    template <class T>
    buffer<T> make_buffer(std::size_t count) const {
        return buffer<T>(context_->memory(), stream(), count);
    }

    template <class T>
    void upload(const T* host, T* backend_memory, std::size_t count) const {
        copy(host, backend_memory, count, cudaMemcpyHostToDevice);
    }

    template <class T>
    void download(const T* backend_memory, T* host, std::size_t count) const {
        copy(backend_memory, host, count, cudaMemcpyDeviceToHost);
    }

    template <class T>
    deferred<T> read(const T* pointer) const {
        return deferred<T>(context_, pointer);
    }

    template <class Task>
    void invoke(const Task& task) const {
        static_assert(std::is_trivially_copyable_v<Task>, "a task travels as bytes");
        detail::launch("invoke", detail::invoke_kernel<Task>, {1, 1}, stream(), task);
    }

    template <class Functor, class... Operands>
    void transform(const Functor& functor, const Operands&... operands) const {
        detail::cuda_transform(*context_, functor, operands...);
    }

    template <class Reducer, class... Operands>
    void reduce(typename Reducer::value_type* result, const Reducer& reducer,
                const Operands&... operands) const {
        detail::cuda_reduce(*context_, result, reducer, operands...);
    }

    template <class Reducer, class... Operands>
    void reduce_each(typename Reducer::value_type* values, const Reducer& reducer,
                     const Operands&... operands) const {
        detail::cuda_reduce_each(*context_, values, reducer, operands...);
    }

    /// See kernels/matrix_cast.hpp.
    template <class From, class To, class Rounding>
    void cast_matrix(const matrix_view<const From>& from, const matrix_view<To>& to,
                     Rounding rounding) const {
        detail::cuda_cast_matrix(*context_, from, to,
                                 detail::rounded_element<To, Rounding>{rounding});
    }

    /// See kernels/float8_cast.hpp.
    template <class From, class To, class Scaling>
    void cast_scaled(const matrix_view<const From>& from, const matrix_view<To>& to,
                     const Scaling& scaling) const {
        detail::cuda_cast_matrix(*context_, from, to, detail::scaled_element<To, Scaling>{scaling});
    }

    template <class From, class To, class Scaling>
    void cast_transpose(const matrix_view<const From>& from, const matrix_view<To>& to,
                        const matrix_view<To>& turned, const Scaling& scaling) const {
        detail::cuda_cast_transpose(*context_, from, to, turned, scaling);
    }

    template <class A, class B, class C, class Epilogue>
    void gemm(float alpha, matrix_view<const A> a, matrix_view<const B> b, float beta,
              matrix_view<C> c, const Epilogue& epilogue) const {
        detail::cuda_gemm(*context_, alpha, a, b, beta, c, epilogue);
    }

    template <class Batch, class Epilogue>
    void gemm_batched(float alpha, const Batch& batch, float beta, const Epilogue& epilogue) const {
        detail::cuda_gemm_batched(*context_, alpha, batch, beta, epilogue);
    }

private:
    static std::shared_ptr<cuda_memory_resource> default_memory(const cuda_device& device) {
        if (device.has_memory_pools) return std::make_shared<cuda_pool_resource>();
        return std::make_shared<cuda_malloc_resource>();
    }

    template <class T>
    void copy(const T* from, T* to, std::size_t count, cudaMemcpyKind kind) const {
        static_assert(std::is_trivially_copyable_v<T>);
        if (count == 0) return;
        detail::check_cuda(cudaMemcpyAsync(to, from, count * sizeof(T), kind, stream().get()),
                           "cudaMemcpyAsync");
        stream().synchronize();
    }

    std::shared_ptr<cuda_context> context_;
};

static_assert(backend<cuda_backend>);

}  // namespace demi::inline DEMI_ABI
