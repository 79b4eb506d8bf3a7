// SPDX-License-Identifier: MIT
/// Measures what the CUDA backend does against what the device can: one table. `--tiny` only shows
/// that everything runs.
#include <demi/cuda/policy_backend.cuh>
#include <demi/kernels/cast.hpp>
#include <demi/kernels/gemm.hpp>
#include <demi/training/adamw.hpp>
#include <demi/training/optimizer.hpp>

#include <cuda/cublaslt_peer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace {

bool tiny = false;

__global__ void __launch_bounds__(256)
    copy_kernel(const uint4* from, uint4* to, std::size_t count) {
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
    for (; i + 3 * stride < count; i += 4 * stride) {
        const uint4 a = from[i];
        const uint4 b = from[i + stride];
        const uint4 c = from[i + 2 * stride];
        const uint4 d = from[i + 3 * stride];
        to[i] = a;
        to[i + stride] = b;
        to[i + 2 * stride] = c;
        to[i + 3 * stride] = d;
    }
    for (; i < count; i += stride) to[i] = from[i];
}

struct fill_with {
    float scale;

    template <class Real>
    DEMI_HD void operator()(Real& value) const {
        value = static_cast<Real>(scale);
    }
};

class timer {
public:
    explicit timer(demi::cuda_stream_ref stream) : stream_(stream) {
        demi::detail::check_cuda(cudaEventCreate(&begin_), "cudaEventCreate");
        demi::detail::check_cuda(cudaEventCreate(&end_), "cudaEventCreate");
    }
    timer(const timer&) = delete;

    /// Microseconds of one call of `work` on the device: the median of several rounds of enough
    /// calls to be measured.
    template <class Work>
    double of(const Work& work) const {
        work();
        const double once = round_of(1, work);
        if (tiny || once > 300'000) return once;
        const int calls = std::clamp(static_cast<int>(2000 / std::max(once, 1.0)), 1, 200);
        const int rounds = once > 30'000 ? 3 : 9;
        std::vector<double> found;
        for (int i = 0; i < rounds; ++i) found.push_back(round_of(calls, work));
        std::nth_element(found.begin(), found.begin() + rounds / 2, found.end());
        return found[static_cast<std::size_t>(rounds / 2)];
    }

private:
    template <class Work>
    double round_of(int calls, const Work& work) const {
        float milliseconds = 0;
        demi::detail::check_cuda(cudaEventRecord(begin_, stream_.get()), "cudaEventRecord");
        for (int i = 0; i < calls; ++i) work();
        demi::detail::check_cuda(cudaEventRecord(end_, stream_.get()), "cudaEventRecord");
        demi::detail::check_cuda(cudaEventSynchronize(end_), "cudaEventSynchronize");
        demi::detail::check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_),
                                 "cudaEventElapsedTime");
        return 1000.0 * static_cast<double>(milliseconds) / calls;
    }

    demi::cuda_stream_ref stream_;
    cudaEvent_t begin_ = nullptr;
    cudaEvent_t end_ = nullptr;
};

void print_row(const char* work, const std::string& size, double microseconds, double rate,
               const char* unit, const char* against, double ratio) {
    char text[16] = "-";
    if (ratio > 0) std::snprintf(text, sizeof(text), "%.3f", ratio);
    std::printf("| %-26s | %-16s | %11.2f | %9.1f %-7s | %-15s | %6s |\n", work, size.c_str(),
                microseconds, rate, unit, against, text);
    std::fflush(stdout);
}

template <class T>
demi::cuda_buffer<T> filled(const demi::cuda_backend& where, std::size_t count, float value) {
    auto buffer = where.make_buffer<T>(count);
    const demi::tensor_list<T> list(buffer);
    where.transform(fill_with{value}, demi::out(list));
    return buffer;
}

/// The rows that move memory, each beside the best copy that moves as many bytes.
class memory_rows {
public:
    explicit memory_rows(const demi::cuda_backend& where) : where_(where), timer_(where.stream()) {}

    void run(std::size_t count) {
        const std::string size = std::to_string(count);
        cast_row<float, demi::float16>("cast f32 -> f16", size, count);
        cast_row<demi::float16, float>("cast f16 -> f32", size, count);
        cast_row<float, demi::bfloat16>("cast f32 -> bf16", size, count);
        cast_row<demi::bfloat16, float>("cast bf16 -> f32", size, count);
        norm_row<demi::float16>("check + norm f16", size, count);
        norm_row<demi::bfloat16>("check + norm bf16", size, count);
        norm_row<float>("check + norm f32", size, count);
        update_row(size, count);
    }

private:
    void row(const char* work, const std::string& size, std::size_t bytes, double microseconds) {
        const double copy = best_copy(bytes);
        print_row(work, size, microseconds, static_cast<double>(bytes) / microseconds / 1000,
                  "GB/s", "copy", copy / microseconds);
    }

    double best_copy(std::size_t bytes) {
        const auto known = copies_.find(bytes);
        if (known != copies_.end()) return known->second;
        const std::size_t count = std::max<std::size_t>(bytes / 2 / sizeof(uint4), 1);
        auto from = where_.make_buffer<uint4>(count);
        auto to = where_.make_buffer<uint4>(count);
        const cudaStream_t stream = where_.stream().get();
        const double runtime = timer_.of([&] {
            demi::detail::check_cuda(cudaMemcpyAsync(to.data(), from.data(), count * sizeof(uint4),
                                                     cudaMemcpyDeviceToDevice, stream),
                                     "cudaMemcpyAsync");
        });
        const unsigned blocks = demi::detail::resident_blocks(copy_kernel, 256, (count + 255) / 256,
                                                              where_.context().device());
        const double kernel = timer_.of([&] {
            demi::detail::launch("copy", copy_kernel, {blocks, 256}, where_.stream(), from.data(),
                                 to.data(), count);
        });
        const double best = std::min(runtime, kernel);
        print_row("copy by the runtime", std::to_string(bytes / 2) + " B", runtime,
                  static_cast<double>(bytes) / runtime / 1000, "GB/s", "", 0);
        print_row("copy by a kernel", std::to_string(bytes / 2) + " B", kernel,
                  static_cast<double>(bytes) / kernel / 1000, "GB/s", "", 0);
        copies_[bytes] = best;
        return best;
    }

    template <class From, class To>
    void cast_row(const char* work, const std::string& size, std::size_t count) {
        const auto from = filled<From>(where_, count, 1.5f);
        auto to = where_.make_buffer<To>(count);
        const demi::tensor_list<const From> sources(from);
        const demi::tensor_list<To> targets(to);
        const double time = timer_.of([&] { demi::cast(where_, sources, targets); });
        row(work, size, count * (sizeof(From) + sizeof(To)), time);
    }

    template <class T>
    void norm_row(const char* work, const std::string& size, std::size_t count) {
        const auto values = filled<T>(where_, count, 0.01f);
        auto result = where_.make_buffer<demi::gradient_statistics>(1);
        const demi::tensor_list<const T> list(values);
        const double time = timer_.of(
            [&] { where_.reduce(result.data(), demi::gradient_reducer{}, demi::in(list)); });
        row(work, size, count * sizeof(T), time);
    }

    void update_row(const std::string& size, std::size_t count) {
        const auto gradients = filled<demi::float16>(where_, count, 0.01f);
        auto copies = where_.make_buffer<demi::float16>(count);
        auto weights = filled<float>(where_, count, 1);
        auto first = where_.make_buffer<float>(count);
        auto second = where_.make_buffer<float>(count);
        auto record = where_.make_buffer<demi::detail::step_record>(1);
        demi::detail::step_record decided;
        decided.steps = 1;
        decided.clip_limit = 1;
        decided.apply = true;
        where_.upload(&decided, record.data(), 1);
        const demi::detail::update_pass_with_copy<demi::adamw> pass{{demi::adamw{}, record.data()}};
        const demi::tensor_list<const demi::float16> g(gradients);
        const demi::tensor_list<demi::float16> c(copies);
        const demi::tensor_list<float> w(weights), m(first), v(second);
        const double time = timer_.of([&] {
            demi::transform(where_, pass, demi::in(g), demi::out(c), demi::inout(w), demi::inout(m),
                            demi::inout(v));
        });
        row("AdamW with f16 copy", size, 28 * count, time);
    }

    demi::cuda_backend where_;
    timer timer_;
    std::map<std::size_t, double> copies_;
};

using tf32_backend = demi::cuda_backend_for<demi::tf32>;

struct shape {
    std::size_t rows;
    std::size_t columns;
    std::size_t inner;
};

template <class T, class Backend>
void gemm_row(const Backend& where, const char* work, cudaDataType_t format, const shape& size) {
    const auto a = filled<T>(where, size.rows * size.inner, 0.5f);
    const auto b = filled<T>(where, size.inner * size.columns, 0.25f);
    auto c = where.template make_buffer<T>(size.rows * size.columns);
    const demi::matrix_view<const T> left(a.data(), size.rows, size.inner);
    const demi::matrix_view<const T> right(b.data(), size.inner, size.columns);
    const demi::matrix_view<T> result(c.data(), size.rows, size.columns);
    const timer clock(where.stream());
    const double ours = clock.of([&] { demi::gemm(where, left, right, result); });
    double peer = 0;
    if (!tiny) {
        constexpr bool in_tf32 = std::is_same_v<Backend, tf32_backend>;
        const cublaslt_product product(format, size.rows, size.columns, size.inner, in_tf32,
                                       where.stream());
        if (product.available()) {
            peer = clock.of([&] { product.run(a.data(), b.data(), c.data()); });
        }
    }
    const std::string text = std::to_string(size.rows) + "x" + std::to_string(size.columns) + "x" +
                             std::to_string(size.inner);
    const double flops = 2.0 * static_cast<double>(size.rows) * static_cast<double>(size.columns) *
                         static_cast<double>(size.inner);
    print_row(work, text, ours, flops / ours / 1e6, "TFLOP/s", peer > 0 ? "cuBLASLt" : "",
              peer / ours);
}

std::size_t kernels_of(cudaGraph_t graph) {
    std::size_t count = 0;
    demi::detail::check_cuda(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes");
    std::vector<cudaGraphNode_t> nodes(count);
    demi::detail::check_cuda(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes");
    return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), [](auto node) {
        cudaGraphNodeType type{};
        demi::detail::check_cuda(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
        return type == cudaGraphNodeTypeKernel;
    }));
}

/// A whole step over `count` tensors: launches, the host's time for it, the device's eager and as a
/// graph.
void step_rows(const demi::cuda_backend& where, std::size_t count, std::size_t elements) {
    auto weights = filled<demi::float16>(where, elements, 1);
    auto gradients = filled<demi::float16>(where, elements, 0.01f);
    demi::tensor_list<demi::float16> weight_list, gradient_list;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t size = elements / count / 8 * 8;
        const std::span<demi::float16> w(weights.data() + i * size, size);
        const std::span<demi::float16> g(gradients.data() + i * size, size);
        weight_list.add(w);
        gradient_list.add(g);
    }
    demi::optimizer<demi::adamw, demi::mixed_float16, demi::cuda_backend> optimizer(
        where, demi::adamw{}, weight_list);
    demi::loss_scaler<demi::cuda_backend> scaler(where);
    const auto step = [&] {
        static_cast<void>(optimizer.step(gradient_list, scaler, demi::clip_by_global_norm{1.0f}));
    };
    const timer clock(where.stream());
    const double eager = clock.of(step);

    const int steps = tiny ? 2 : 50;
    where.stream().synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) step();
    const std::chrono::duration<double, std::micro> host = std::chrono::steady_clock::now() - begin;
    where.stream().synchronize();

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    const cudaStream_t stream = where.stream().get();
    demi::detail::check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal),
                             "cudaStreamBeginCapture");
    step();
    demi::detail::check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    demi::detail::check_cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    const double replay = clock.of(
        [&] { demi::detail::check_cuda(cudaGraphLaunch(executable, stream), "cudaGraphLaunch"); });

    const std::string size = std::to_string(count) + " tensors";
    const double bytes = 30.0 * static_cast<double>(elements) / 1000;
    print_row("step, eager", size, eager, bytes / eager, "GB/s", "", 0);
    print_row("step, graph", size, replay, bytes / replay, "GB/s", "eager", eager / replay);
    print_row("step, host time", size, host.count() / steps, static_cast<double>(kernels_of(graph)),
              "kernels", "", 0);
    demi::detail::check_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
    demi::detail::check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

void run(const demi::cuda_backend& where) {
    std::printf("| %-26s | %-16s | %11s | %17s | %-15s | %6s |\n", "work", "size", "time, us",
                "rate", "against", "ratio");
    std::printf("|%s|%s|%s|%s|%s|%s|\n", std::string(28, '-').c_str(), std::string(18, '-').c_str(),
                std::string(13, '-').c_str(), std::string(19, '-').c_str(),
                std::string(17, '-').c_str(), std::string(8, '-').c_str());
    memory_rows memory(where);
    const std::vector<std::size_t> sizes =
        tiny ? std::vector<std::size_t>{4096}
             : std::vector<std::size_t>{std::size_t{1} << 20, std::size_t{1} << 24,
                                        std::size_t{1} << 27};
    for (const std::size_t size : sizes) memory.run(size);

    const std::size_t elements = tiny ? 20'000 : std::size_t{1} << 24;
    for (const std::size_t count : {1, 150, 700}) step_rows(where, count, elements);

    const std::vector<shape> shapes = tiny ? std::vector<shape>{{64, 64, 64}, {40, 24, 8}}
                                           : std::vector<shape>{{1024, 1024, 1024},
                                                                {4096, 4096, 4096},
                                                                {8192, 8192, 8192},
                                                                {8192, 8192, 128},
                                                                {128, 8192, 8192}};
    for (const shape& size : shapes) {
        gemm_row<demi::float16>(where, "GEMM f16, f32 sums", CUDA_R_16F, size);
        gemm_row<demi::bfloat16>(where, "GEMM bf16, f32 sums", CUDA_R_16BF, size);
        gemm_row<float>(where, "GEMM f32", CUDA_R_32F, size);
        gemm_row<float>(tf32_backend(where), "GEMM TF32, f32 sums", CUDA_R_32F, size);
    }
}

}  // namespace

int main(int count, char* arguments[]) {
    tiny = count == 2 && std::strcmp(arguments[1], "--tiny") == 0;
    if (count > 1 && !tiny) {
        std::fprintf(stderr, "usage: cuda_bench [--tiny]\n");
        return 2;
    }
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::printf("skipped: no CUDA device\n");
        return 77;
    }
    cudaDeviceProp properties{};
    demi::detail::check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    std::printf("%s, compute capability %d.%d, %d multiprocessors\n\n", properties.name,
                properties.major, properties.minor, properties.multiProcessorCount);
    const demi::cuda_stream stream;
    run(demi::cuda_backend(stream));
}
