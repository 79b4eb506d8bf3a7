// SPDX-License-Identifier: MIT
/// The batch of matrix products of the CUDA backend: one launch for products of one shape.
#pragma once

#include <demi/cuda/gemm.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace demi::inline DEMI_ABI::detail {

/// The transposed products of a batch.
template <class Batch>
struct transposed_batch {
    const Batch& batch;

    auto a(std::size_t i) const { return transposed(batch.b(i)); }
    auto b(std::size_t i) const { return transposed(batch.a(i)); }
    auto c(std::size_t i) const { return transposed(batch.c(i)); }
};

template <class T>
bool lie_alike(const matrix_view<T>& x, const matrix_view<T>& y) {
    return x.rows() == y.rows() && x.columns() == y.columns() && x.order() == y.order() &&
           x.leading_dimension() == y.leading_dimension();
}

/// Products `first` to `first + count` of a batch, which differ in addresses only.
template <class Batch>
struct batch_run {
    const Batch& batch;
    std::size_t first;
    std::size_t count;

    /// The longest one from `first`.
    static batch_run from(const Batch& batch, std::size_t first, std::size_t size) {
        constexpr std::size_t most = 65535;  // blocks in z
        std::size_t count = 1;
        while (count < most && first + count < size &&
               lie_alike(batch.a(first), batch.a(first + count)) &&
               lie_alike(batch.b(first), batch.b(first + count)) &&
               lie_alike(batch.c(first), batch.c(first + count))) {
            ++count;
        }
        return {batch, first, count};
    }

    batch_places places_of(std::size_t i) const {
        return {batch.a(first + i).data(), batch.b(first + i).data(), batch.c(first + i).data()};
    }
};

template <class T>
std::ptrdiff_t distance_in(const void* from, const void* to) {
    const auto bytes = static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(to) -
                                                   reinterpret_cast<std::uintptr_t>(from));
    return bytes / static_cast<std::ptrdiff_t>(sizeof(T));
}

/// Equal distances when there are any, else a list on the device.
template <class A, class B, class C>
batch_walk find_walk(cuda_context& context, const std::vector<batch_places>& places) {
    batch_walk walk;
    if (places.size() < 2) return walk;
    const auto step = [](const batch_places& from, const batch_places& to) {
        return batch_walk{distance_in<A>(from.a, to.a), distance_in<B>(from.b, to.b),
                          distance_in<C>(from.c, to.c)};
    };
    walk = step(places[0], places[1]);
    const auto differs = [&](const batch_places& from, const batch_places& to) {
        const batch_walk next = step(from, to);
        return next.a != walk.a || next.b != walk.b || next.c != walk.c;
    };
    if (std::adjacent_find(places.begin(), places.end(), differs) == places.end()) return walk;
    walk.places = static_cast<const batch_places*>(context.tables().find(
        places.data(), places.size() * sizeof(batch_places), context.stream(), context.memory()));
    return walk;
}

template <product_math Math, class Run, class Epilogue>
void run_gemm_batch(cuda_context& context, float alpha, const Run& run, float beta,
                    const Epilogue& epilogue, bool is_transposed) {
    auto product = make_product<Math>(alpha, run.batch.a(run.first), run.batch.b(run.first), beta,
                                      run.batch.c(run.first), epilogue, is_transposed);
    using product_type = decltype(product);
    product_lines lines;
    std::vector<batch_places> places;
    for (std::size_t i = 0; i < run.count; ++i) {
        lines.add(run.batch.a(run.first + i), run.batch.b(run.first + i),
                  run.batch.c(run.first + i));
        places.push_back(run.places_of(i));
    }
    product.count = static_cast<unsigned>(run.count);
    product.walk = find_walk<typename product_type::left, typename product_type::right,
                             typename product_type::result>(context, places);
    run_product(context, product, lines);
}

/// See requirement 9 of `backend`. One launch (or two) for each run of products that differ in
/// their addresses only. No synchronisation, except that a list of addresses without equal
/// distances is copied to the device when it is new.
template <product_math Math = product_math::usual, class Batch, class Epilogue>
void cuda_gemm_batched(cuda_context& context, float alpha, const Batch& batch, float beta,
                       const Epilogue& epilogue) {
    std::size_t first = 0;
    while (first < batch.size()) {
        const auto run = batch_run<Batch>::from(batch, first, batch.size());
        first += run.count;
        if (batch.c(run.first).empty()) continue;
        if (batch.c(run.first).order() == layout::row_major) {
            run_gemm_batch<Math>(context, alpha, run, beta, epilogue, false);
        } else {
            const transposed_batch<Batch> flipped{batch};
            run_gemm_batch<Math>(context, alpha,
                                 batch_run<transposed_batch<Batch>>{flipped, run.first, run.count},
                                 beta, epilogue, true);
        }
    }
}

}  // namespace demi::inline DEMI_ABI::detail
