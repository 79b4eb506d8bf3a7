// SPDX-License-Identifier: MIT
/// The functions that a scalar functor may call, for float and double.
#include <demi/core/real.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <support/catch.hpp>
#include <type_traits>

namespace {

template <class Real>
constexpr Real infinity = std::numeric_limits<Real>::infinity();
template <class Real>
constexpr Real not_a_number = std::numeric_limits<Real>::quiet_NaN();

template <class Real>
typename demi::real_traits<Real>::bits code(Real value) {
    return __builtin_bit_cast(typename demi::real_traits<Real>::bits, value);
}

}  // namespace

TEMPLATE_TEST_CASE("a real is float or double, and the functions keep its type", "", float,
                   double) {
    CHECK(demi::scalar_real<TestType>);
    CHECK(std::is_same_v<decltype(demi::sqrt(TestType{2})), TestType>);
    CHECK(std::is_same_v<decltype(demi::abs(TestType{2})), TestType>);
    CHECK(std::is_same_v<decltype(demi::min(TestType{2}, 1)), TestType>);
    CHECK(std::is_same_v<decltype(demi::select(true, TestType{2}, 1)), TestType>);
    CHECK_FALSE(demi::scalar_real<int>);
    CHECK_FALSE(demi::scalar_real<const TestType>);
}

TEMPLATE_TEST_CASE("abs clears the sign of every value, zero and NaN included", "", float, double) {
    CHECK(demi::abs(TestType{-3}) == 3);
    CHECK(demi::abs(TestType{3}) == 3);
    CHECK(code(demi::abs(TestType{-0.0})) == 0);
    CHECK(demi::abs(-infinity<TestType>) == infinity<TestType>);
    CHECK(code(demi::abs(-not_a_number<TestType>)) == code(not_a_number<TestType>));
}

TEMPLATE_TEST_CASE("sqrt rounds as the C library's does, in vectors too", "", float, double) {
    std::mt19937_64 random(9);
    TestType values[256], roots[256];
    std::size_t wrong = 0;
    for (int round = 0; round < 100; ++round) {
        for (TestType& value : values) {
            value = std::ldexp(static_cast<TestType>(random() >> 11),
                               static_cast<int>(random() % 120) - 110);
        }
        for (std::size_t i = 0; i < 256; ++i) roots[i] = demi::sqrt(values[i]);
        for (std::size_t i = 0; i < 256; ++i) wrong += roots[i] != std::sqrt(values[i]);
    }
    CHECK(wrong == 0);
    CHECK(code(demi::sqrt(TestType{-0.0})) == code(TestType{-0.0}));
    CHECK(demi::sqrt(infinity<TestType>) == infinity<TestType>);
    CHECK(std::isnan(demi::sqrt(TestType{-1})));
}

TEMPLATE_TEST_CASE("min and max give the second value when the first is NaN", "", float, double) {
    CHECK(demi::min(TestType{1}, 2) == 1);
    CHECK(demi::max(TestType{1}, 2) == 2);
    CHECK(demi::min(TestType{2}, 1) == 1);
    CHECK(demi::max(TestType{2}, 1) == 2);
    CHECK(demi::min(not_a_number<TestType>, 4) == 4);
    CHECK(demi::max(not_a_number<TestType>, 4) == 4);
    CHECK(demi::max(-infinity<TestType>, std::numeric_limits<TestType>::lowest()) ==
          std::numeric_limits<TestType>::lowest());
}

TEMPLATE_TEST_CASE("select takes the first value when the condition holds", "", float, double) {
    static_assert(demi::select(true, TestType{1}, TestType{2}) == 1);
    CHECK(demi::select(true, TestType{1}, 2) == 1);
    CHECK(demi::select(false, TestType{1}, 2) == 2);
}

TEMPLATE_TEST_CASE("sqrt is correctly rounded", "", float, double) {
    CHECK(demi::sqrt(TestType{0}) == 0);
    CHECK(demi::sqrt(TestType{2.25}) == TestType{1.5});
    CHECK(demi::sqrt(infinity<TestType>) == infinity<TestType>);
    std::mt19937_64 random(3);
    int mismatches = 0;
    for (int i = 0; i < 5000; ++i) {
        const auto root = static_cast<TestType>(random() % 4096);
        if (demi::sqrt(root * root) != root) ++mismatches;
    }
    CHECK(mismatches == 0);
}

TEMPLATE_TEST_CASE("magnitude bits order values as their magnitudes, NaN last", "", float, double) {
    using traits = demi::real_traits<TestType>;
    CHECK(demi::magnitude_bits(TestType{-0.0}) == 0);
    CHECK(demi::magnitude_bits(TestType{-2}) == demi::magnitude_bits(TestType{2}));
    CHECK(demi::magnitude_bits(-infinity<TestType>) == traits::infinity_bits);
    CHECK(demi::magnitude_bits(std::numeric_limits<TestType>::lowest()) < traits::infinity_bits);
    CHECK(demi::magnitude_bits(not_a_number<TestType>) > traits::infinity_bits);
    CHECK(demi::magnitude_bits(-not_a_number<TestType>) > traits::infinity_bits);
    std::mt19937_64 random(4);
    int mismatches = 0;
    for (int i = 0; i < 20000; ++i) {
        const auto draw = [&] {
            return __builtin_bit_cast(TestType, static_cast<typename traits::bits>(random()));
        };
        const TestType left = draw();
        const TestType right = draw();
        if (left != left || right != right) continue;
        const bool smaller = demi::abs(left) < demi::abs(right);
        if (smaller != (demi::magnitude_bits(left) < demi::magnitude_bits(right))) ++mismatches;
    }
    CHECK(mismatches == 0);
}

TEST_CASE("the wide type of a sum is double, so that squares of floats cannot overflow") {
    CHECK(std::is_same_v<demi::real_traits<float>::wide, double>);
    CHECK(std::is_same_v<demi::real_traits<double>::wide, double>);
    const double largest = demi::widen(std::numeric_limits<float>::max());
    CHECK(largest * largest < infinity<double>);
}

TEST_CASE("folding the lanes of one lane gives the lane") {
    CHECK(demi::sum_lanes(2.5) == 2.5);
    CHECK(demi::max_lanes(std::uint32_t{7}) == 7);
    CHECK(demi::max_lanes(std::uint64_t{1} << 40) == std::uint64_t{1} << 40);
    CHECK(demi::max(std::uint32_t{1}, std::uint32_t{2}) == 2);
    CHECK(demi::max(std::uint64_t{1} << 40, std::uint64_t{2}) == std::uint64_t{1} << 40);
}
