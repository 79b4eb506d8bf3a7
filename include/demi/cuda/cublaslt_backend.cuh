// SPDX-License-Identifier: MIT
/// The CUDA backend with cuBLASLt for plain products; its programs link cublasLt.
#pragma once

#include <demi/cuda/cublaslt.hpp>
#include <demi/cuda/cuda_backend.cuh>

#include <concepts>
#include <memory>
#include <utility>

namespace demi::inline DEMI_ABI {

/// A `cuda_backend` whose products without an epilogue, of two matrices of one format in a result
/// of that format or float, are left to cuBLASLt wherever it has an algorithm. Their bits are those
/// of cuBLASLt then.
class cublaslt_backend : public cuda_backend {
public:
    /// Throws as `cuda_backend` does, and `cublaslt_error`.
    explicit cublaslt_backend(cuda_stream_ref stream) : cuda_backend(stream) {}
    cublaslt_backend(cuda_stream_ref stream, std::shared_ptr<cuda_memory_resource> memory)
        : cuda_backend(stream, std::move(memory)) {}

    template <class A, class B, class C, class Epilogue>
    void gemm(float alpha, matrix_view<const A> a, matrix_view<const B> b, float beta,
              matrix_view<C> c, const Epilogue& epilogue) const {
        if constexpr (std::same_as<Epilogue, no_epilogue> && cublaslt::supports<A, B, C>) {
            if (!a.empty() && library_->multiply(stream(), alpha, a, b, beta, c)) return;
        }
        cuda_backend::gemm(alpha, a, b, beta, c, epilogue);
    }

private:
    std::shared_ptr<cublaslt> library_ = std::make_shared<cublaslt>(context().memory());
};

static_assert(backend<cublaslt_backend>);

}  // namespace demi::inline DEMI_ABI
