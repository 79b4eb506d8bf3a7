// SPDX-License-Identifier: MIT
/// A race in shared memory, planted to show that a race check finds one.
#include <demi/cuda/memory.hpp>

namespace {

__global__ void sum_neighbours(int* sums) {
    __shared__ int values[256];
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
    // Here a barrier is missing.
    sums[threadIdx.x] = values[threadIdx.x] + values[255 - threadIdx.x];
}

}  // namespace

int main() {
    const demi::cuda_stream stream;
    demi::cuda_buffer<int> sums(std::make_shared<demi::cuda_malloc_resource>(), stream, 256);
    sum_neighbours<<<1, 256, 0, stream.get()>>>(sums.data());
    stream.synchronize();
}
