// SPDX-License-Identifier: MIT
/// Matrix products by cuBLASLt, for programs that link it.
#pragma once

#include <demi/core/matrix_view.hpp>
#include <demi/cuda/memory.hpp>
#include <demi/precision/bfloat16.hpp>
#include <demi/precision/float16.hpp>
#include <demi/precision/format_traits.hpp>

#include <cublasLt.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace demi::inline DEMI_ABI {

/// A call of cuBLASLt failed.
class cublaslt_error : public error {
public:
    cublaslt_error(const std::string& message, cublasStatus_t status)
        : error(message), status_(status) {}

    cublasStatus_t status() const noexcept { return status_; }

private:
    cublasStatus_t status_;
};

namespace detail {

inline void check_cublaslt(cublasStatus_t status, std::string_view call) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    raise(cublaslt_error(message("cublaslt: ", call, ": ", cublasLtGetStatusName(status)), status));
}

template <class T>
constexpr std::optional<cudaDataType_t> cublaslt_type() {
    if (same_format<T, float>) return CUDA_R_32F;
    if (same_format<T, float16>) return CUDA_R_16F;
    if (same_format<T, bfloat16>) return CUDA_R_16BF;
    return std::nullopt;
}

/// One factor, or the result, of a product, as a column-major matrix that may be transposed.
struct cublaslt_matrix {
    const void* data;
    cudaDataType_t type;
    std::uint64_t rows;
    std::uint64_t columns;
    std::int64_t leading;
    bool is_transposed;

    template <class T>
    explicit cublaslt_matrix(const matrix_view<T>& matrix)
        : data(matrix.data()),
          type(*cublaslt_type<std::remove_const_t<T>>()),
          rows(matrix.rows()),
          columns(matrix.columns()),
          leading(static_cast<std::int64_t>(matrix.leading_dimension())),
          is_transposed(matrix.order() == layout::row_major) {
        if (is_transposed) std::swap(rows, columns);
    }

    std::uint32_t alignment() const {
        const auto place = reinterpret_cast<std::uintptr_t>(data) | 256;
        return static_cast<std::uint32_t>(place & (~place + 1));
    }

    /// What an algorithm depends on.
    std::array<std::uint64_t, 6> key() const {
        return {static_cast<std::uint64_t>(type),    rows,          columns,
                static_cast<std::uint64_t>(leading), is_transposed, alignment()};
    }

    cublasLtMatrixLayoutOpaque_t layout() const {
        cublasLtMatrixLayoutOpaque_t result;
        check_cublaslt(cublasLtMatrixLayoutInit(&result, type, rows, columns, leading),
                       "cublasLtMatrixLayoutInit");
        return result;
    }
};

}  // namespace detail

/// A handle of cuBLASLt with the algorithms that it has chosen so far.
///
/// Used from one thread at a time, on the device that is current when it is made.
class cublaslt {
public:
    /// Takes workspace from `memory`. Throws `cublaslt_error`.
    explicit cublaslt(std::shared_ptr<cuda_memory_resource> memory) : memory_(std::move(memory)) {
        detail::check_cublaslt(cublasLtCreate(&handle_), "cublasLtCreate");
    }
    ~cublaslt() { static_cast<void>(cublasLtDestroy(handle_)); }
    cublaslt(const cublaslt&) = delete;
    cublaslt& operator=(const cublaslt&) = delete;

    /// Whether products of these formats can be asked for.
    template <class A, class B, class C>
    static constexpr bool supports = same_format<A, B>&& detail::cublaslt_type<A>().has_value() &&
                                     (same_format<C, A> || same_format<C, float>);

    /// Computes `c = alpha a b + beta c` with sums in float, in the order of `stream`; false, and
    /// nothing done, when cuBLASLt has no algorithm for it. Throws `cublaslt_error`,
    /// `out_of_memory`.
    template <class A, class B, class C>
        requires(supports<A, B, C>)
    bool multiply(cuda_stream_ref stream, float alpha, const matrix_view<const A>& a,
                  const matrix_view<const B>& b, float beta, const matrix_view<C>& c) {
        if (c.order() == layout::row_major) {
            return run(stream, alpha, detail::cublaslt_matrix(transposed(b)),
                       detail::cublaslt_matrix(transposed(a)), beta,
                       detail::cublaslt_matrix(transposed(c)));
        }
        return run(stream, alpha, detail::cublaslt_matrix(a), detail::cublaslt_matrix(b), beta,
                   detail::cublaslt_matrix(c));
    }

private:
    using matrix = detail::cublaslt_matrix;
    using matrix_key = std::array<std::uint64_t, 6>;
    using known_algorithm = std::optional<cublasLtMatmulHeuristicResult_t>;
    static constexpr std::size_t most_workspace = std::size_t{32} << 20;

    struct operation {
        cublasLtMatmulDescOpaque_t description;
        cublasLtMatrixLayoutOpaque_t a, b, c;

        operation(const matrix& left, const matrix& right, const matrix& result)
            : a(left.layout()), b(right.layout()), c(result.layout()) {
            detail::check_cublaslt(
                cublasLtMatmulDescInit(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                "cublasLtMatmulDescInit");
            set(CUBLASLT_MATMUL_DESC_TRANSA, left.is_transposed);
            set(CUBLASLT_MATMUL_DESC_TRANSB, right.is_transposed);
        }

    private:
        void set(cublasLtMatmulDescAttributes_t attribute, bool is_transposed) {
            const cublasOperation_t value = is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
            detail::check_cublaslt(
                cublasLtMatmulDescSetAttribute(&description, attribute, &value, sizeof(value)),
                "cublasLtMatmulDescSetAttribute");
        }
    };

    bool run(cuda_stream_ref stream, float alpha, const matrix& a, const matrix& b, float beta,
             const matrix& c) {
        operation work(a, b, c);
        const known_algorithm& chosen = algorithm_for(work, a, b, c);
        if (!chosen) return false;
        const detail::cuda_block workspace(memory_, stream, chosen->workspaceSize);
        void* const result = const_cast<void*>(c.data);
        detail::check_cublaslt(
            cublasLtMatmul(handle_, &work.description, &alpha, a.data, &work.a, b.data, &work.b,
                           &beta, result, &work.c, result, &work.c, &chosen->algo, workspace.data(),
                           workspace.bytes(), stream.get()),
            "cublasLtMatmul");
        return true;
    }

    const known_algorithm& algorithm_for(operation& work, const matrix& a, const matrix& b,
                                         const matrix& c) {
        const auto [place, is_new] = known_.try_emplace({a.key(), b.key(), c.key()});
        if (is_new) place->second = ask(work, a, b, c);
        return place->second;
    }

    known_algorithm ask(operation& work, const matrix& a, const matrix& b, const matrix& c) {
        cublasLtMatmulPreferenceOpaque_t preference;
        detail::check_cublaslt(cublasLtMatmulPreferenceInit(&preference),
                               "cublasLtMatmulPreferenceInit");
        const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
            detail::check_cublaslt(
                cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)),
                "cublasLtMatmulPreferenceSetAttribute");
        };
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a.alignment());
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b.alignment());
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c.alignment());
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c.alignment());

        cublasLtMatmulHeuristicResult_t best;
        int found = 0;
        const cublasStatus_t status =
            cublasLtMatmulAlgoGetHeuristic(handle_, &work.description, &work.a, &work.b, &work.c,
                                           &work.c, &preference, 1, &best, &found);
        if (status == CUBLAS_STATUS_NOT_SUPPORTED) return std::nullopt;
        detail::check_cublaslt(status, "cublasLtMatmulAlgoGetHeuristic");
        if (found == 0) return std::nullopt;
        return best;
    }

    std::shared_ptr<cuda_memory_resource> memory_;
    cublasLtHandle_t handle_ = nullptr;
    std::map<std::array<matrix_key, 3>, known_algorithm> known_;
};

}  // namespace demi::inline DEMI_ABI
