// SPDX-License-Identifier: MIT
/// Runs one pass and prints what its kernels may move and do; see expected_counts.hpp.
#include <demi/cuda/cuda_backend.cuh>
#include <demi/kernels/cast.hpp>
#include <demi/kernels/float8_cast.hpp>
#include <demi/kernels/matrix_cast.hpp>
#include <demi/training/adamw.hpp>
#include <demi/training/optimizer.hpp>

#include <cuda/expected_counts.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace {

constexpr std::uint64_t elements = 300'000;
constexpr std::uint64_t sector = 32;

/// Within 2 %, in sectors too: whole sectors are moved, and each once.
void expect_traffic(const char* kernel, const std::string& direction, std::uint64_t bytes) {
    const auto near = [&](const std::string& counter, std::uint64_t value) {
        expect(kernel, counter.c_str(), value - value / 50, value + value / 50);
    };
    near("global_" + direction + "_bytes", bytes);
    near("global_" + direction + "_sectors", bytes / sector);
}

template <class T>
class tensors {
public:
    tensors(const demi::cuda_backend& where, std::size_t count, std::size_t size) {
        for (std::size_t i = 0; i < count; ++i) {
            memory_.push_back(where.make_buffer<T>(size));
            const std::span<T> elements(memory_.back().data(), size);
            list.add(elements);
        }
    }

private:
    std::vector<demi::cuda_buffer<T>> memory_;

public:
    demi::tensor_list<T> list;
};

template <class T>
void check_and_norm(const demi::cuda_backend& where) {
    const tensors<T> gradients(where, 1, elements);
    auto result = where.make_buffer<demi::gradient_statistics>(1);
    where.reduce(result.data(), demi::gradient_reducer{}, demi::in(gradients.list));
    where.stream().synchronize();

    constexpr std::uint64_t most_blocks = 1024;
    const std::uint64_t chunk = 256 * 4 * (16 / sizeof(T));
    const std::uint64_t chunks = (elements + chunk - 1) / chunk;
    const std::uint64_t blocks = chunks < most_blocks ? chunks : most_blocks;
    expect("reduce_chunks", "global_load_bytes", elements * sizeof(T), elements * sizeof(T));
    expect_traffic("reduce_chunks", "load", elements * sizeof(T));
    expect("reduce", "global_store_bytes", 0, 1024 + 16 * blocks);
    expect("kernel", "launches", 2, 2);
    expect_no_hidden_cost();
}

template <class From, class To>
void cast(const demi::cuda_backend& where) {
    const tensors<From> from(where, 1, elements);
    const tensors<To> to(where, 1, elements);
    demi::cast(where, from.list, to.list);
    where.stream().synchronize();

    expect_traffic("transform", "load", elements * sizeof(From));
    expect_traffic("transform", "store", elements * sizeof(To));
    expect("kernel", "launches", 1, 1);
    expect_no_hidden_cost();
}

/// A matrix that lies in whole sectors: full ones are moved whichever way it turns.
template <class From, class To>
void cast_matrix(const demi::cuda_backend& where, demi::layout target) {
    constexpr std::size_t rows = 768, columns = 640, count = rows * columns;
    auto from = where.make_buffer<From>(count);
    auto to = where.make_buffer<To>(count);
    demi::cast(where, demi::matrix_view<From>(from.data(), rows, columns),
               demi::matrix_view<To>(to.data(), rows, columns, target));
    where.stream().synchronize();

    expect_traffic("matrix", "load", count * sizeof(From));
    expect_traffic("matrix", "store", count * sizeof(To));
    expect("kernel", "launches", 1, 1);
    expect_no_hidden_cost();
}

/// Values, transpose and amax of one read.
template <class From>
void cast_transpose(const demi::cuda_backend& where) {
    constexpr std::size_t rows = 768, columns = 640, count = rows * columns;
    auto from = where.make_buffer<From>(count);
    auto to = where.make_buffer<demi::float8_e4m3>(count);
    auto turned = where.make_buffer<demi::float8_e4m3>(count);
    auto numbers = where.make_buffer<float>(3);
    float* const scale = numbers.data();
    demi::cast_transpose(where, demi::matrix_view<From>(from.data(), rows, columns),
                         demi::matrix_view<demi::float8_e4m3>(to.data(), rows, columns),
                         demi::matrix_view<demi::float8_e4m3>(turned.data(), columns, rows),
                         {scale, scale + 1, scale + 2});
    where.stream().synchronize();

    // Every thread reads the scale, every block raises amax.
    constexpr std::uint64_t blocks = 30, threads = 256;
    const std::uint64_t read = count * sizeof(From);
    expect("matrix", "global_load_bytes", read, read + blocks * threads * sizeof(float));
    expect("matrix", "global_load_sectors", read / sector, (read + read / 50) / sector);
    expect_traffic("matrix", "store", 2 * count);
    expect("matrix", "atomics", blocks, blocks * 9);
    expect("kernel", "launches", 1, 1);
    expect("kernel", "local_bytes", 0, 0);
    expect("kernel", "bank_conflicts", 0, 0);
}

/// A step with 16-bit gradients and weights over float masters: the update moves 28 bytes per
/// parameter.
template <class Policy>
void step(const demi::cuda_backend& where, std::size_t count) {
    using compute = typename demi::policy_traits<Policy>::compute_type;
    const std::size_t size = elements / count;
    const std::uint64_t moved = size * count;
    tensors<compute> weights(where, count, size);
    tensors<compute> gradients(where, count, size);
    demi::optimizer<demi::adamw, Policy, demi::cuda_backend> optimizer(where, demi::adamw{},
                                                                       weights.list);
    demi::loss_scaler<demi::cuda_backend> scaler(where);
    static_cast<void>(optimizer.step(gradients.list, scaler, demi::clip_by_global_norm{1.0f}));
    where.stream().synchronize();

    expect("copy_value", "launches", 1, 1);
    expect("kernel", "launches", 2, 1 + 5);  // the cast is before the step
    expect("reduce_chunks", "launches", 1, 1);
    expect("update_pass", "launches", 1, 1);
    if (count == 1) {
        expect_traffic("update_pass", "load", moved * 14);
        expect_traffic("update_pass", "store", moved * 14);
    }
    expect_no_hidden_cost();
}

/// The statistics of every gradient tensor, without a wait.
void each_tensor(const demi::cuda_backend& where) {
    const std::size_t count = 700, size = 480;
    tensors<demi::float16> gradients(where, count, size);
    auto found = where.make_buffer<demi::gradient_statistics>(count);
    const demi::tensor_list<const demi::float16> list(gradients.list);
    demi::reduce_each(where, found.data(), demi::gradient_reducer{}, demi::in(list));
    where.stream().synchronize();

    expect("kernel", "launches", 2, 2);
    expect("reduce_chunks", "launches", 1, 1);
    expect_no_hidden_cost();
}

const std::map<std::string, std::function<void(const demi::cuda_backend&)>> cases{
    {"check_norm_f16", check_and_norm<demi::float16>},
    {"check_norm_bf16", check_and_norm<demi::bfloat16>},
    {"check_norm_f32", check_and_norm<float>},
    {"each_tensor_f16", each_tensor},
    {"cast_f32_f16", cast<float, demi::float16>},
    {"cast_f16_f32", cast<demi::float16, float>},
    {"cast_f32_bf16", cast<float, demi::bfloat16>},
    {"cast_bf16_f32", cast<demi::bfloat16, float>},
    {"matrix_f32_f16",
     [](const auto& where) { cast_matrix<float, demi::float16>(where, demi::layout::row_major); }},
    {"turned_f32_f32",
     [](const auto& where) { cast_matrix<float, float>(where, demi::layout::column_major); }},
    {"turned_f32_f16",
     [](const auto& where) {
         cast_matrix<float, demi::float16>(where, demi::layout::column_major);
     }},
    {"turned_f16_f16",
     [](const auto& where) {
         cast_matrix<demi::float16, demi::float16>(where, demi::layout::column_major);
     }},
    {"turned_e4m3_f32",
     [](const auto& where) {
         cast_matrix<demi::float8_e4m3, float>(where, demi::layout::column_major);
     }},
    {"cast_transpose_f16", cast_transpose<demi::float16>},
    {"adamw_f16", [](const auto& where) { step<demi::mixed_float16>(where, 1); }},
    {"step_many_tensors", [](const auto& where) { step<demi::mixed_float16>(where, 700); }},
};

}  // namespace

int main(int count, char* arguments[]) {
    const auto chosen = cases.find(count == 2 ? arguments[1] : "");
    if (chosen == cases.end()) {
        std::fprintf(stderr, "usage: cuda_traffic <case>\n");
        for (const auto& known : cases) std::fprintf(stderr, "  %s\n", known.first.c_str());
        return 2;
    }
    const demi::cuda_stream stream;
    chosen->second(demi::cuda_backend(stream));
}
