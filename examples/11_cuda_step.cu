// SPDX-License-Identifier: MIT
// An engine of raw pointers and kernels takes the optimizer and the loss scaler. Its whole step,
// skip decision and scale included, is one CUDA graph; the host looks when it wants to.
#include <demi/cuda/cuda_backend.cuh>
#include <demi/training/adamw.hpp>
#include <demi/training/optimizer.hpp>

#include <cstdlib>
#include <iostream>
#include <random>
#include <span>
#include <vector>

constexpr int rows = 256, columns = 32;  // find the weights with y = x w

// What the engine has: kernels over __half pointers. It asks the scaler where it runs.
using scaler_view = demi::loss_scaler_view<demi::dynamic_loss_scale>;

__global__ void forward(const __half* x, const __half* w, const float* y, float* error) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = -y[row];
    for (int i = 0; i < columns; ++i)
        sum += __half2float(x[row * columns + i]) * __half2float(w[i]);
    error[row] = sum;
}

__global__ void backward(const __half* x, const float* error, __half* gradient,
                         scaler_view scaler) {
    float sum = 0;
    for (int row = 0; row < rows; ++row)
        sum += __half2float(x[row * columns + threadIdx.x]) * error[row];
    gradient[threadIdx.x] = __float2half(scaler.scale() * sum / rows);
}

void check(cudaError_t code) {
    if (code == cudaSuccess) return;
    std::cerr << cudaGetErrorString(code) << '\n';
    std::exit(1);
}

struct engine_policy : demi::mixed_float16 {
    using compute_type = __half;
};

int main() {
    demi::cuda_stream stream;  // or the engine's own cudaStream_t
    demi::cuda_backend backend{stream};

    __half *x, *w, *gradient;
    float *y, *error;
    check(cudaMalloc(&x, rows * columns * sizeof *x));
    check(cudaMalloc(&w, columns * sizeof *w));
    check(cudaMalloc(&gradient, columns * sizeof *gradient));
    check(cudaMalloc(&y, rows * sizeof *y));
    check(cudaMalloc(&error, rows * sizeof *error));

    std::mt19937 random(1);
    std::vector<__half> inputs(rows * columns), start(columns, __float2half(0.0f));
    std::vector<float> outputs(rows);
    for (int row = 0; row < rows; ++row) {
        for (int i = 0; i < columns; ++i) {
            const float value = static_cast<float>(random() % 2001) / 1000 - 1;
            inputs[row * columns + i] = __float2half(value);
            outputs[row] +=
                value * static_cast<float>(i % 4);  // the weights are 0 1 2 3 0 1 2 3 ...
        }
    }
    check(cudaMemcpy(x, inputs.data(), inputs.size() * sizeof *x, cudaMemcpyHostToDevice));
    check(cudaMemcpy(y, outputs.data(), outputs.size() * sizeof *y, cudaMemcpyHostToDevice));
    check(cudaMemcpy(w, start.data(), start.size() * sizeof *w, cudaMemcpyHostToDevice));

    demi::optimizer<demi::adamw, engine_policy, demi::cuda_backend> optimizer{
        backend, {.learning_rate = 0.05f, .weight_decay = 0}, std::span(w, columns)};
    demi::loss_scaler scaler{backend, demi::dynamic_loss_scale{.initial_scale = 0x1p20f}};

    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
    forward<<<1, rows, 0, stream.get()>>>(x, w, y, error);
    backward<<<1, columns, 0, stream.get()>>>(x, error, gradient, scaler.view());
    const auto report = optimizer.step(std::span(gradient, columns), scaler);
    cudaGraph_t graph;
    check(cudaStreamEndCapture(stream.get(), &graph));
    cudaGraphExec_t step;
    check(cudaGraphInstantiate(&step, graph, 0));

    for (int i = 0; i < 300; ++i) {
        check(cudaGraphLaunch(step, stream.get()));
        if (i < 3 || i % 100 == 99) std::cout << "step " << i + 1 << ' ' << report.get() << '\n';
    }

    std::vector<__half> found(columns);
    backend.download(w, found.data(), found.size());
    std::cout << "weights";
    for (int i = 0; i < 8; ++i) std::cout << ' ' << __half2float(found[i]);
    std::cout << " ...\n";
}
