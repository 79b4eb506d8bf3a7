// SPDX-License-Identifier: MIT
/// The first day's program on a device.
#include <demi/demi_cuda.cuh>

#include <cstdio>
#include <span>
#include <vector>

bool has_device();

int main() {
    if (!has_device()) {
        std::printf("0.1 becomes 0.0999756 in float16 wherever there is a device\n");
        return 0;
    }
    const demi::cuda_stream stream;
    const demi::cuda_backend backend(stream);
    auto wide = backend.make_buffer<float>(1);
    auto narrow = backend.make_buffer<__half>(1);
    const float value = 0.1f;
    backend.upload(&value, wide.data(), 1);
    demi::cast(backend, std::span(wide.data(), 1), std::span(narrow.data(), 1));
    const __half result = backend.read(narrow.data()).get();
    std::printf("%g becomes %g in float16\n", static_cast<double>(value),
                static_cast<double>(demi::convert<float>(result)));
}
