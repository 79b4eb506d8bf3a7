// SPDX-License-Identifier: MIT
/// Conversion of whole lists: the same bits as the conversion of one value, everywhere.
#include <demi/kernels/cast.hpp>
#include <demi/precision/convert.hpp>
#include <demi/precision/random_bits.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <support/backends.hpp>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <vector>

namespace {

/// Every code of a format of up to 16 bits.
template <class T>
std::vector<T> all_codes() {
    std::vector<T> codes;
    const std::uint32_t end = std::uint32_t{1} << demi::format_traits<T>::bits;
    for (std::uint32_t bits = 0; bits < end; ++bits) {
        codes.push_back(demi::from_bits<T>(static_cast<demi::bits_of<T>>(bits)));
    }
    return codes;
}

/// Floats of every exponent, with the patterns that rounding cares about.
std::vector<float> awkward_floats() {
    std::mt19937_64 random(11);
    std::vector<float> values;
    for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
        for (const std::uint32_t mantissa :
             {0u, 1u, 0x1000u, 0x0fffu, 0x1001u, 0x2000u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u,
              0x18000u, 0x400000u, 0x7fffffu, static_cast<std::uint32_t>(random()) & 0x7fffffu}) {
            values.push_back(demi::from_bits<float>(exponent << 23 | mantissa));
            values.push_back(demi::from_bits<float>(0x80000000u | exponent << 23 | mantissa));
        }
    }
    return values;
}

template <class To, class From, class Backend>
std::size_t wrong_casts(Backend& where, const std::vector<From>& from) {
    std::vector<To> to(from.size());
    demi::cast(where, from, to);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        wrong += !same_bits(to[i], demi::convert<To>(from[i]));
    }
    return wrong;
}

template <class T, class Backend>
std::size_t changed_bits(Backend& where, const std::vector<T>& from) {
    std::vector<T> to(from.size());
    demi::cast(where, from, to);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto quiet = demi::is_nan(from[i]) ? demi::format_traits<T>::quiet_nan_bits : 0;
        changed += (demi::to_bits(to[i]) | quiet) != (demi::to_bits(from[i]) | quiet);
    }
    return changed;
}

struct layer {
    std::vector<float> weight;
    std::vector<float> bias;
};

}  // namespace

TEMPLATE_TEST_CASE("a cast gives the bits that convert gives, for every code", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    const auto halves = all_codes<demi::float16>();
    CHECK(wrong_casts<float>(where, halves) == 0);
    CHECK(wrong_casts<double>(where, halves) == 0);
    CHECK(wrong_casts<demi::bfloat16>(where, halves) == 0);
    CHECK(wrong_casts<demi::float8_e5m2>(where, halves) == 0);
    const auto brains = all_codes<demi::bfloat16>();
    CHECK(wrong_casts<float>(where, brains) == 0);
    CHECK(wrong_casts<demi::float16>(where, brains) == 0);
    CHECK(wrong_casts<demi::float8_e4m3>(where, brains) == 0);
    CHECK(wrong_casts<float>(where, all_codes<demi::float8_e4m3>()) == 0);
    CHECK(wrong_casts<demi::float16>(where, all_codes<demi::float8_e5m2>()) == 0);

    const auto floats = awkward_floats();
    CHECK(wrong_casts<demi::float16>(where, floats) == 0);
    CHECK(wrong_casts<demi::bfloat16>(where, floats) == 0);
    CHECK(wrong_casts<demi::float8_e4m3>(where, floats) == 0);
    CHECK(wrong_casts<demi::float8_e5m2>(where, floats) == 0);
}

TEMPLATE_TEST_CASE("a cast within one format keeps every bit, but may make a NaN quiet", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    CHECK(changed_bits(where, awkward_floats()) == 0);
    CHECK(changed_bits(where, all_codes<demi::float16>()) == 0);
    CHECK(changed_bits(where, all_codes<demi::bfloat16>()) == 0);
}

TEMPLATE_TEST_CASE("a double is rounded once, not by way of float", "", DEMI_TEST_BACKENDS) {
    TestType where;
    // The midpoint of two halves plus a part too small for float: through float it would be a tie.
    const std::vector<double> from(9, 1.0 + 0x1p-11 + 0x1p-40);
    std::vector<demi::float16> to(9);
    demi::cast(where, from, to);
    CHECK(to == std::vector<demi::float16>(9, demi::float16(1.0f + 0x1p-10f)));
}

TEMPLATE_TEST_CASE("what is too large becomes infinity, or NaN where there is none", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    const std::vector<float> from{65519.0f, 65520.0f, -1e30f, 449.0f, 465.0f};
    std::vector<demi::float16> halves(5);
    demi::cast(where, from, halves);
    CHECK(static_cast<float>(halves[0]) == 65504.0f);
    CHECK(halves[1].bits() == 0x7c00);
    CHECK(halves[2].bits() == 0xfc00);
    std::vector<demi::float8_e4m3> bytes(5);
    demi::cast(where, from, bytes);
    CHECK(demi::is_nan(bytes[2]));
    CHECK(static_cast<float>(bytes[3]) == 448.0f);
    CHECK(demi::is_nan(bytes[4]));
}

TEMPLATE_TEST_CASE("the rounding of a cast is the caller's choice", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const std::vector<float> from(300, 1.0f + 0x1.8p-8f);
    std::vector<demi::bfloat16> to(300);
    demi::cast(where, from, to, demi::toward_zero{});
    CHECK(to == std::vector<demi::bfloat16>(300, demi::bfloat16(1.0f)));

    demi::cast(where, from, to, demi::stochastic{1, 2});
    std::size_t wrong = 0, up = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
        const auto bits = demi::random_bits(demi::random_key(1, 2, 0), i);
        wrong +=
            !same_bits(to[i], demi::convert<demi::bfloat16>(from[i], demi::stochastic_bits{bits}));
        up += to[i] > 1.0f;
    }
    CHECK(wrong == 0);
    // Three quarters of the way up: 225 expected, standard deviation 7.5.
    CHECK(up > 180);
    CHECK(up < 270);
}

TEMPLATE_TEST_CASE("lists of foreign tensors are cast tensor by tensor", "", DEMI_TEST_BACKENDS) {
    TestType where;
    layer from{{1, 2, 3}, {4}};
    std::vector<std::vector<demi::float16>> to{std::vector<demi::float16>(3),
                                               std::vector<demi::float16>(1)};
    demi::cast(where, demi::tensors(from.weight, from.bias), to);
    CHECK(static_cast<float>(to[0][2]) == 3.0f);
    CHECK(static_cast<float>(to[1][0]) == 4.0f);

    std::vector<float*> none;
    const std::vector<std::vector<float>*> pointers{&from.weight, &from.bias};
    to[0].assign(3, demi::float16(7.0f));
    demi::cast(where, to, pointers);
    CHECK(from.weight == std::vector<float>{7, 7, 7});

    const float raw[] = {9, 8};
    float target[2] = {};
    demi::cast(where, std::span(raw), std::span(target));
    CHECK(target[0] == 9.0f);
}

TEST_CASE("a cast refuses shapes that differ and a null pointer, naming the sizes") {
    reference_backend where;
    std::vector<float> from(3);
    std::vector<demi::float16> to(4, demi::float16(1.0f));
    const auto text = message_of<demi::invalid_argument>([&] { demi::cast(where, from, to); });
    CHECK(mentions(text, {"4 elements", "expected 3"}));
    CHECK(to == std::vector<demi::float16>(4, demi::float16(1.0f)));

    const std::vector<std::vector<float>> none;
    CHECK(mentions(message_of<demi::invalid_argument>([&] { demi::cast(where, none, to); }),
                   {"1 operand tensors", "expected 0"}));

    struct view_of_nothing {
        float* data() const { return nullptr; }
        std::size_t size() const { return 4; }
    };
    const view_of_nothing null;
    CHECK(mentions(message_of<demi::invalid_argument>([&] { demi::cast(where, null, to); }),
                   {"null pointer", "4 elements"}));
}

TEST_CASE("a cast into a part of its own source is refused") {
    reference_backend where;
    std::vector<float> memory{1, 2, 3, 4};
    std::span<float> from(memory.data(), 3), to(memory.data() + 1, 3);
    CHECK_THROWS_AS(demi::cast(where, from, to), demi::invalid_argument);
    CHECK(memory == std::vector<float>{1, 2, 3, 4});
}
