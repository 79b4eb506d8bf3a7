// SPDX-License-Identifier: MIT
#include "peers.hpp"

#if defined(BENCH_HAS_OPENBLAS)
#include <cblas.h>
#endif

namespace bench::openblas {

#if defined(BENCH_HAS_OPENBLAS)

std::string describe() {
    const std::string config = openblas_get_config();
    const auto version = config.find(' ') + 1;
    return config.substr(version, config.find(' ', version) - version) + ", kernels for " +
           openblas_get_corename();
}

void set_threads(std::size_t count) { openblas_set_num_threads(static_cast<int>(count)); }

task sgemm(const product& shape, const float* a, const float* b, float* c) {
    const auto m = static_cast<int>(shape.m);
    const auto n = static_cast<int>(shape.n);
    const auto k = static_cast<int>(shape.k);
    const bool ta = shape.transpose_a;
    const bool tb = shape.transpose_b;
    return [=] {
        cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
                    m, n, k, 1.0f, a, ta ? m : k, b, tb ? k : n, 0.0f, c, n);
    };
}

#else

std::string describe() { return {}; }
void set_threads(std::size_t) {}
task sgemm(const product&, const float*, const float*, float*) { return {}; }

#endif

}  // namespace bench::openblas
