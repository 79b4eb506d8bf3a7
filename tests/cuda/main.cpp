// SPDX-License-Identifier: MIT
/// Runs the tests, or says that there is no device to run them on.
#define CATCH_CONFIG_RUNNER
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <cuda_runtime_api.h>

#include <cstdio>

int main(int count, char* arguments[]) {
    constexpr int skipped = 77;
    int devices = 0;
    const cudaError_t found = cudaGetDeviceCount(&devices);
    if (found != cudaSuccess || devices == 0) {
        std::printf("skipped: no CUDA device (%s); DEMI_CUDA_LAUNCHER may name an emulator\n",
                    cudaGetErrorString(found));
        return skipped;
    }
    return Catch::Session().run(count, arguments);
}
