// SPDX-License-Identifier: MIT
/// Matrix products by cuBLASLt, for comparison; loaded when the program runs, if it is there.
#pragma once

#include <demi/core/error.hpp>
#include <demi/cuda/memory.hpp>

#include <cstddef>
#include <library_types.h>
#include <memory>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#include <dlfcn.h>
#define DEMI_BENCH_HAS_CUBLASLT 1
#else
#define DEMI_BENCH_HAS_CUBLASLT 0
#endif

/// A row-major product of one shape, with float sums, by the first choice of the library;
/// `in_tf32`: it may round float factors to TF32.
class cublaslt_product {
public:
#if DEMI_BENCH_HAS_CUBLASLT
    cublaslt_product(cudaDataType_t format, std::size_t rows, std::size_t columns,
                     std::size_t inner, bool in_tf32, demi::cuda_stream_ref stream)
        : stream_(stream), workspace_(memory(), stream, workspace_size) {
        library_ = load();
        if (library_ == nullptr) return;
        // What is row-major to us is transposed to a library of columns: c' = b' a'.
        check(call<decltype(&cublasLtCreate)>("cublasLtCreate")(&handle_));
        check(call<decltype(&cublasLtMatmulDescCreate)>("cublasLtMatmulDescCreate")(
            &operation_, in_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
        left_ = matrix(format, columns, inner);
        right_ = matrix(format, inner, rows);
        result_ = matrix(format, columns, rows);
        cublasLtMatmulPreference_t preference = nullptr;
        check(call<decltype(&cublasLtMatmulPreferenceCreate)>("cublasLtMatmulPreferenceCreate")(
            &preference));
        const std::size_t room = workspace_size;
        check(call<decltype(&cublasLtMatmulPreferenceSetAttribute)>(
            "cublasLtMatmulPreferenceSetAttribute")(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof(room)));
        int found = 0;
        check(call<decltype(&cublasLtMatmulAlgoGetHeuristic)>("cublasLtMatmulAlgoGetHeuristic")(
            handle_, operation_, left_, right_, result_, result_, preference, 1, &choice_, &found));
        available_ = found == 1;
        matmul_ = call<decltype(&cublasLtMatmul)>("cublasLtMatmul");
    }
    cublaslt_product(const cublaslt_product&) = delete;

    bool available() const { return available_; }

    void run(const void* a, const void* b, void* c) const {
        const float one = 1;
        const float zero = 0;
        check(matmul_(handle_, operation_, &one, b, left_, a, right_, &zero, c, result_, c, result_,
                      &choice_.algo, workspace_.data(), workspace_size, stream_.get()));
    }

private:
    static constexpr std::size_t workspace_size = std::size_t{64} << 20;

    static std::shared_ptr<demi::cuda_memory_resource> memory() {
        return std::make_shared<demi::cuda_pool_resource>();
    }

    static void* load() {
        for (const char* name : {"libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12"}) {
            if (void* library = dlopen(name, RTLD_NOW)) return library;
        }
        return nullptr;
    }

    template <class Function>
    Function call(const char* name) const {
        void* const function = dlsym(library_, name);
        if (function == nullptr) {
            demi::detail::raise(demi::error(demi::detail::message("cublasLt: no ", name)));
        }
        return reinterpret_cast<Function>(function);
    }

    static void check(cublasStatus_t status) {
        if (status == CUBLAS_STATUS_SUCCESS) return;
        demi::detail::raise(
            demi::error(demi::detail::message("cublasLt: status ", static_cast<int>(status))));
    }

    cublasLtMatrixLayout_t matrix(cudaDataType_t format, std::size_t rows,
                                  std::size_t columns) const {
        cublasLtMatrixLayout_t layout = nullptr;
        check(call<decltype(&cublasLtMatrixLayoutCreate)>("cublasLtMatrixLayoutCreate")(
            &layout, format, rows, columns, static_cast<std::int64_t>(rows)));
        return layout;
    }

    demi::cuda_stream_ref stream_;
    demi::detail::cuda_block workspace_;
    void* library_ = nullptr;
    bool available_ = false;
    cublasLtHandle_t handle_ = nullptr;
    cublasLtMatmulDesc_t operation_ = nullptr;
    cublasLtMatrixLayout_t left_ = nullptr;
    cublasLtMatrixLayout_t right_ = nullptr;
    cublasLtMatrixLayout_t result_ = nullptr;
    cublasLtMatmulHeuristicResult_t choice_{};
    decltype(&cublasLtMatmul) matmul_ = nullptr;
#else
    cublaslt_product(cudaDataType_t, std::size_t, std::size_t, std::size_t, bool,
                     demi::cuda_stream_ref) {}
    bool available() const { return false; }
    void run(const void*, const void*, void*) const {}
#endif
};
