// SPDX-License-Identifier: MIT
#include <demi/cuda/cuda_backend.cuh>
#include <demi/kernels/matrix_cast.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <support/catch.hpp>
#include <vector>

namespace {

using demi::bfloat16;
using demi::float16;
using demi::float8_e4m3;
using demi::float8_e5m2;
using demi::layout;
using demi::matrix_view;

/// Where a matrix lies in its memory.
struct placement {
    layout order = layout::row_major;
    std::size_t padding = 0;
    std::size_t offset = 0;
};

/// A matrix on the device, and its memory before and after; beyond the matrix there are other
/// elements.
template <class T>
class device_matrix {
public:
    device_matrix(const demi::cuda_backend& where, std::size_t rows, std::size_t columns,
                  const placement& place, std::mt19937_64& random)
        : where_(where),
          rows_(rows),
          columns_(columns),
          place_(place),
          leading_((place.order == layout::row_major ? columns : rows) + place.padding),
          lines_(place.order == layout::row_major ? rows : columns),
          memory_(where.make_buffer<T>(place.offset + lines_ * leading_ + 8)),
          before(memory_.size()) {
        for (T& element : before) {
            element = demi::from_bits<T>(static_cast<demi::bits_of<T>>(random()));
        }
        where.upload(before.data(), memory_.data(), before.size());
    }

    matrix_view<T> view() { return of(memory_.data()); }
    matrix_view<const T> old() const { return of(before.data()); }

    std::vector<T> after() const {
        std::vector<T> values(memory_.size());
        where_.download(memory_.data(), values.data(), values.size());
        return values;
    }

    template <class U>
    matrix_view<U> of(U* memory) const {
        return {memory + place_.offset, rows_, columns_, leading_, place_.order};
    }

private:
    demi::cuda_backend where_;
    std::size_t rows_, columns_;
    placement place_;
    std::size_t leading_, lines_;
    demi::cuda_buffer<T> memory_;

public:
    std::vector<T> before;
};

template <class To, class From>
To element_of(const From& value, demi::nearest_even rounding, std::uint64_t) {
    return demi::convert<To>(value, rounding);
}
template <class To, class From>
To element_of(const From& value, demi::toward_zero rounding, std::uint64_t) {
    return demi::convert<To>(value, rounding);
}
template <class To, class From>
To element_of(const From& value, demi::stochastic rounding, std::uint64_t index) {
    const auto key = demi::random_key(rounding.seed, rounding.step, 0);
    return demi::convert<To>(value, demi::stochastic_bits{demi::random_bits(key, index)});
}

/// Elements of the target's memory, padding included, that are not what they should be.
template <class From, class To, class Rounding>
std::size_t wrong_elements(const device_matrix<From>& from, const device_matrix<To>& to,
                           Rounding rounding) {
    std::vector<To> expected = to.before;
    const auto target = to.of(expected.data());
    const auto source = from.old();
    for (std::size_t r = 0; r < target.rows(); ++r) {
        for (std::size_t c = 0; c < target.columns(); ++c) {
            const std::uint64_t index = target.order() == layout::row_major
                                            ? r * target.columns() + c
                                            : c * target.rows() + r;
            target(r, c) = element_of<To>(source(r, c), rounding, index);
        }
    }
    const std::vector<To> found = to.after();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        wrong += demi::to_bits(found[i]) != demi::to_bits(expected[i]);
    }
    return wrong;
}

placement random_placement(std::mt19937_64& random) {
    return {random() % 2 == 0 ? layout::row_major : layout::column_major,
            random() % 2 == 0 ? 0 : random() % 9, random() % 2 == 0 ? 0 : random() % 17};
}

template <class From, class To, class Rounding = demi::nearest_even>
std::size_t wrong_casts(std::size_t largest, unsigned count, Rounding rounding = {}) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    std::mt19937_64 random(5);
    std::size_t wrong = 0;
    for (unsigned i = 0; i < count; ++i) {
        const std::size_t rows = random() % (largest + 1);
        const std::size_t columns = random() % (largest + 1);
        device_matrix<From> from(where, rows, columns, random_placement(random), random);
        device_matrix<To> to(where, rows, columns, random_placement(random), random);
        demi::cast(where, from.view(), to.view(), rounding);
        wrong += wrong_elements(from, to, rounding);
    }
    return wrong;
}

template <class From, class To, class Rounding = demi::nearest_even>
void check_casts(Rounding rounding = {}) {
    CHECK(wrong_casts<From, To>(7, 30, rounding) == 0);
    CHECK(wrong_casts<From, To>(160, 40, rounding) == 0);
}

}  // namespace

TEST_CASE("a matrix of any shape, layout, padding and place is converted as its elements are") {
    SECTION("float to float16") { check_casts<float, float16>(); }
    SECTION("bfloat16 to float") { check_casts<bfloat16, float>(); }
    SECTION("float to bfloat16, cut") { check_casts<float, bfloat16>(demi::toward_zero{}); }
    SECTION("float to bfloat16, at random") {
        check_casts<float, bfloat16>(demi::stochastic{3, 4});
    }
    SECTION("float16 to float8, at random") {
        check_casts<float16, float8_e4m3>(demi::stochastic{5, 6});
    }
    SECTION("float to float8") { check_casts<float, float8_e5m2>(); }
    SECTION("float8 to float") { check_casts<float8_e4m3, float>(); }
    SECTION("float8 to float8") { check_casts<float8_e4m3, float8_e4m3>(); }
    SECTION("double to float16") { check_casts<double, float16>(); }
    SECTION("float to double") { check_casts<float, double>(); }
}

TEST_CASE("vectors and long matrices are converted in either layout") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    std::mt19937_64 random(6);
    const std::size_t shapes[][2] = {{1, 70001}, {70001, 1}, {3, 40000}, {40000, 3}, {515, 517}};
    for (const auto& shape : shapes) {
        for (const auto source : {layout::row_major, layout::column_major}) {
            for (const auto target : {layout::row_major, layout::column_major}) {
                CAPTURE(shape[0], shape[1]);
                device_matrix<float> from(where, shape[0], shape[1], {source, 0, 0}, random);
                device_matrix<float16> to(where, shape[0], shape[1], {target, 0, 1}, random);
                demi::cast(where, from.view(), to.view());
                CHECK(wrong_elements(from, to, demi::nearest_even{}) == 0);
            }
        }
    }
}

TEST_CASE("a captured conversion of a matrix gives the bits of an eager one") {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    std::mt19937_64 random(7);
    device_matrix<float> from(where, 50, 60, {}, random);
    device_matrix<float16> to(where, 50, 60, {layout::column_major, 2, 1}, random);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
    demi::cast(where, from.view(), to.view());
    REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
    REQUIRE(cudaGraphLaunch(replay, stream.get()) == cudaSuccess);
    CHECK(wrong_elements(from, to, demi::nearest_even{}) == 0);
    CHECK(cudaGraphExecDestroy(replay) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}
