// SPDX-License-Identifier: MIT
/// Runs the tests, or says that there is no device to run them on; where DEMI_TEST_CAPABILITY is
/// defined, of this compute capability (90 for 9.0).
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
#if defined(DEMI_TEST_CAPABILITY)
    int major = 0;
    int minor = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) != cudaSuccess ||
        10 * major + minor != DEMI_TEST_CAPABILITY) {
        std::printf("skipped: compute capability is %d.%d, expected %d.%d\n", major, minor,
                    DEMI_TEST_CAPABILITY / 10, DEMI_TEST_CAPABILITY % 10);
        return skipped;
    }
#endif
    return Catch::Session().run(count, arguments);
}
