// SPDX-License-Identifier: MIT
#include <demi/host/reduce.hpp>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <random>
#include <string>
#include <support/catch.hpp>
#include <unit/host/available_isas.hpp>
#include <vector>

namespace {

using demi::bfloat16;
using demi::element_position;
using demi::float16;
using demi::host_context;
using demi::host_isa;
using demi::magnitude_bits;
using demi::max;
using demi::max_lanes;
using demi::sum_lanes;
using demi::tensor_list;
using demi::widen;

/// What the tests need of a reducer: a wide sum, an integer maximum, and the place of the first
/// value that is not finite.
struct summary {
    double squares = 0;
    std::uint32_t largest = 0;
    int inspected = 0;
    int bad = 0;
    element_position first{};
};

struct summarise {
    using value_type = summary;

    template <class Real>
    struct partial {
        typename demi::real_traits<Real>::wide squares{};
        typename demi::real_traits<Real>::bits largest{};
    };
    template <class Real>
    void accumulate(partial<Real>& into, const Real& value) const {
        const auto wide = widen(value);
        into.squares = into.squares + wide * wide;
        into.largest = max(into.largest, magnitude_bits(value));
    }
    template <class Real>
    value_type finish(const partial<Real>& from) const {
        summary result;
        result.squares = sum_lanes(from.squares);
        result.largest = static_cast<std::uint32_t>(max_lanes(from.largest));
        return result;
    }
    value_type combine(const value_type& a, const value_type& b) const {
        const bool a_first = b.bad == 0 || (a.bad != 0 && a.first < b.first);
        return {a.squares + b.squares, demi::max(a.largest, b.largest), a.inspected + b.inspected,
                a.bad + b.bad, a_first ? a.first : b.first};
    }
    bool wants_inspection(const value_type& block) const { return block.largest >= 0x7f800000; }
    void inspect(value_type& block, element_position at, float value) const {
        ++block.inspected;
        if (demi::is_finite(value)) return;
        if (block.bad++ == 0) block.first = at;
    }
};

template <class T>
summary reduce(host_isa isa, const demi::host_executor& executor, const tensor_list<const T>& list,
               std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
    summary result;
    demi::detail::host_reduce({isa, &executor, memory}, &result, summarise{}, in(list));
    return result;
}

template <class T>
tensor_list<const T> list_of(const std::vector<std::vector<T>>& tensors) {
    tensor_list<const T> list;
    for (const auto& tensor : tensors) list.add(tensor);
    return list;
}

template <class T>
std::vector<T> small_integers(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<T> values(count);
    for (auto& value : values) value = T(static_cast<float>(random() % 64) - 32.0f);
    return values;
}

template <class T>
void check_exact_sums() {
    const auto executor = demi::make_thread_executor(1);
    for (const host_isa isa : demi_test::available_isas()) {
        int wrong = 0;
        const auto check = [&](std::size_t count, std::size_t offset) {
            const auto values = small_integers<T>(count + offset, count);
            double squares = 0;
            float largest = 0;
            for (std::size_t i = offset; i < values.size(); ++i) {
                const auto value = static_cast<float>(values[i]);
                squares += static_cast<double>(value * value);
                largest = demi::max(largest, demi::abs(value));
            }
            tensor_list<const T> list;
            const std::span<const T> part(values.data() + offset, count);
            list.add(part);
            const summary result = reduce(isa, executor, list);
            wrong += result.squares != squares;
            wrong += result.largest != demi::magnitude_bits(largest);
            wrong += result.inspected != 0;
        };
        for (std::size_t count = 0; count <= 200; ++count) check(count, count % 3);
        for (const std::size_t count : {511u, 512u, 545u, 1023u, 16384u, 16385u, 40000u}) {
            check(count, 1);
        }
        CAPTURE(std::string(demi::name(isa)));
        CHECK(wrong == 0);
    }
}

}  // namespace

TEST_CASE("a reduction takes in every element exactly once, for any length, place and format") {
    check_exact_sums<float>();
    check_exact_sums<float16>();
    check_exact_sums<bfloat16>();
}

TEST_CASE("the norm of 128 values of 1e19 is finite") {
    const auto executor = demi::make_thread_executor(1);
    const std::vector<std::vector<float>> tensors = {std::vector<float>(128, 1e19f)};
    for (const host_isa isa : demi_test::available_isas()) {
        const summary result = reduce(isa, executor, list_of(tensors));
        CHECK(result.largest < 0x7f800000);
        CHECK(std::abs(std::sqrt(result.squares) / (std::sqrt(128.0) * 1e19) - 1.0) < 1e-7);
    }
}

TEST_CASE("the bits of a reduction do not depend on the number of threads") {
    std::mt19937_64 random(5);
    std::vector<std::vector<float>> tensors;
    for (const std::size_t size : {100u, 0u, 150001u, 16384u, 90000u, 7u}) {
        tensors.emplace_back(size);
        for (auto& value : tensors.back()) {
            value = static_cast<float>(random() % 1000003) * 1e-5f - 3.0f;
        }
    }
    for (const host_isa isa : demi_test::available_isas()) {
        const double expected =
            reduce(isa, demi::make_thread_executor(1), list_of(tensors)).squares;
        CHECK(expected > 0.0);
        for (const std::size_t threads : {2u, 3u, 7u}) {
            const auto executor = demi::make_thread_executor(threads);
            CHECK(reduce(isa, executor, list_of(tensors)).squares == expected);
        }
    }
}

TEST_CASE("only the chunk that asks for it is inspected, and its elements know their place") {
    std::vector<std::vector<float>> tensors = {std::vector<float>(50, 1.0f),
                                               std::vector<float>(200000, 1.0f),
                                               std::vector<float>(16384 + 5, 1.0f)};
    tensors[1][100001] = std::numeric_limits<float>::quiet_NaN();
    tensors[1][100003] = std::numeric_limits<float>::infinity();
    tensors[2][16388] = -std::numeric_limits<float>::infinity();
    for (const host_isa isa : demi_test::available_isas()) {
        for (const std::size_t threads : {1u, 3u}) {
            const auto executor = demi::make_thread_executor(threads);
            const summary result = reduce(isa, executor, list_of(tensors));
            CHECK(result.bad == 3);
            CHECK(result.first == element_position{1, 100001});
            CHECK(result.inspected == 16384 + 5);
        }
    }
}

TEST_CASE("a reduction of nothing is the identity") {
    const auto executor = demi::make_thread_executor(2);
    const summary result = reduce(demi::detected_host_isa(), executor, tensor_list<const float>{});
    CHECK(result.squares == 0.0);
    CHECK(result.largest == 0);
}

namespace {

struct weighted_sum {
    using value_type = double;
    template <class Real>
    struct partial {
        typename demi::real_traits<Real>::wide sum{};
    };
    template <class Real>
    void accumulate(partial<Real>& into, const Real& a, const Real& b) const {
        into.sum = into.sum + widen(a) * widen(b);
    }
    template <class Real>
    value_type finish(const partial<Real>& from) const {
        return sum_lanes(from.sum);
    }
    value_type combine(value_type a, value_type b) const { return a + b; }
};

struct float_only {
    using value_type = float;
    template <class Real>
    struct partial {
        Real sum{};
    };
    void accumulate(partial<float>& into, float value) const { into.sum += value; }
    value_type finish(const partial<float>& from) const { return from.sum; }
    value_type combine(value_type a, value_type b) const { return a + b; }
};

}  // namespace

TEST_CASE("several operands, of several formats, are reduced together") {
    const auto executor = demi::make_thread_executor(1);
    const auto a = small_integers<float>(1000, 1);
    const auto b = small_integers<float16>(1000, 2);
    const std::vector<double> c(1000, 0.5);
    double expected = 0, halves = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        expected += static_cast<double>(a[i]) * static_cast<double>(static_cast<float>(b[i]));
        halves += 0.5 * static_cast<double>(a[i]);
    }
    for (const host_isa isa : demi_test::available_isas()) {
        const host_context context{isa, &executor, nullptr};
        double result = 0;
        demi::detail::host_reduce(context, &result, weighted_sum{}, in(tensor_list<const float>(a)),
                                  in(tensor_list<const float16>(b)));
        CHECK(result == expected);
        demi::detail::host_reduce(context, &result, weighted_sum{}, in(tensor_list<const float>(a)),
                                  in(tensor_list<const double>(c)));
        CHECK(result == halves);
    }
}

TEST_CASE("a reducer for floats only is given floats") {
    const auto executor = demi::make_thread_executor(1);
    const auto values = small_integers<bfloat16>(777, 3);
    float expected = 0;
    for (const auto value : values) expected += static_cast<float>(value);
    for (const host_isa isa : demi_test::available_isas()) {
        float result = 0;
        demi::detail::host_reduce({isa, &executor, nullptr}, &result, float_only{},
                                  in(tensor_list<const bfloat16>(values)));
        CHECK(result == expected);
    }
}

TEST_CASE("a reduction without memory for its chunks throws and leaves the result alone") {
    const std::vector<std::vector<float>> tensors = {std::vector<float>(200000, 1.0f)};
    const auto executor = demi::make_thread_executor(2);
    const auto list = list_of(tensors);
    summary result;
    result.squares = -1.0;
    const host_context context{demi::detected_host_isa(), &executor,
                               std::pmr::null_memory_resource()};
    CHECK_THROWS_AS(demi::detail::host_reduce(context, &result, summarise{}, in(list)),
                    demi::out_of_memory);
    CHECK(result.squares == -1.0);
}
