// SPDX-License-Identifier: MIT
#include "peers.hpp"

#if defined(BENCH_HAS_EIGEN)
#include <Eigen/Core>
#endif

namespace bench::eigen {

#if defined(BENCH_HAS_EIGEN)

namespace {

using rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using columns = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

Eigen::Index index(std::size_t value) { return static_cast<Eigen::Index>(value); }

template <class Left, class Right>
task make_product(const product& shape, const float* a, const float* b, float* c) {
    return [=] {
        const Eigen::Map<const Left> left(a, index(shape.m), index(shape.k));
        const Eigen::Map<const Right> right(b, index(shape.k), index(shape.n));
        Eigen::Map<rows>(c, index(shape.m), index(shape.n)).noalias() = left * right;
    };
}

template <class From, class To>
task make_cast(const void* from, void* to, std::size_t count) {
    using source = Eigen::Array<From, Eigen::Dynamic, 1>;
    using target = Eigen::Array<To, Eigen::Dynamic, 1>;
    return [=] {
        Eigen::Map<target>(static_cast<To*>(to), index(count)) =
            Eigen::Map<const source>(static_cast<const From*>(from), index(count))
                .template cast<To>();
    };
}

}  // namespace

std::string describe() {
    return std::to_string(EIGEN_WORLD_VERSION) + '.' + std::to_string(EIGEN_MAJOR_VERSION) + '.' +
           std::to_string(EIGEN_MINOR_VERSION) + ", " + Eigen::SimdInstructionSetsInUse();
}

void set_threads(std::size_t count) { Eigen::setNbThreads(static_cast<int>(count)); }

task sgemm(const product& shape, const float* a, const float* b, float* c) {
    if (shape.transpose_a && shape.transpose_b) {
        return make_product<columns, columns>(shape, a, b, c);
    }
    if (shape.transpose_a) return make_product<columns, rows>(shape, a, b, c);
    if (shape.transpose_b) return make_product<rows, columns>(shape, a, b, c);
    return make_product<rows, rows>(shape, a, b, c);
}

task cast(number from_format, const void* from, number to_format, void* to, std::size_t count) {
    if (from_format == number::float32) {
        return to_format == number::float16 ? make_cast<float, Eigen::half>(from, to, count)
                                            : make_cast<float, Eigen::bfloat16>(from, to, count);
    }
    return from_format == number::float16 ? make_cast<Eigen::half, float>(from, to, count)
                                          : make_cast<Eigen::bfloat16, float>(from, to, count);
}

#else

std::string describe() { return {}; }
void set_threads(std::size_t) {}
task sgemm(const product&, const float*, const float*, float*) { return {}; }
task cast(number, const void*, number, void*, std::size_t) { return {}; }

#endif

}  // namespace bench::eigen
