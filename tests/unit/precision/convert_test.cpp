// SPDX-License-Identifier: MIT
#include "formats.hpp"
#include <demi/precision/convert.hpp>

#include <array>
#include <cstdint>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <support/catch.hpp>
#include <support/float_environment.hpp>
#include <vector>

using namespace demi;

namespace {

std::uint64_t fnv(std::uint64_t hash, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) hash = (hash ^ (value >> (8 * i) & 0xff)) * 0x100000001b3u;
    return hash;
}

constexpr std::uint64_t fnv_start = 0xcbf29ce484222325u;

/// The hashes of one direction and format, by block.
std::map<int, std::uint64_t> golden(std::string_view direction, std::string_view format) {
    std::ifstream file(DEMI_TEST_DATA_DIR "/conversion_golden.txt");
    REQUIRE(file.good());
    std::map<int, std::uint64_t> blocks;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string first, second, hash;
        int block = 0;
        if (words >> first >> second >> block >> hash && first == direction && second == format) {
            blocks[block] = std::stoull(hash, nullptr, 16);
        }
    }
    return blocks;
}

/// Bits of `value`, which is exact in float32.
std::uint32_t float_bits(double value) {
    return static_cast<std::uint32_t>(
        reference::encode(reference::float32, value, reference::rounding::nearest_even, false));
}

template <class To, class From, class Rounding>
int mismatches(const std::vector<std::uint64_t>& magnitudes,
               const std::vector<std::uint64_t>& expected, Rounding rounding, overflow mode) {
    const std::uint64_t source_sign = reference_of<From>.sign_bit();
    const std::uint64_t target_sign = reference_of<To>.sign_bit();
    int count = 0;
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
        const auto plus = static_cast<bits_of<From>>(magnitudes[i]);
        const auto minus = static_cast<bits_of<From>>(magnitudes[i] | source_sign);
        count += to_bits(convert<To>(from_bits<From>(plus), rounding, mode)) != expected[i];
        count += to_bits(convert<To>(from_bits<From>(minus), rounding, mode)) !=
                 (expected[i] | target_sign);
    }
    return count;
}

std::vector<std::uint64_t> encode_all(const reference::format& to, const reference::format& from,
                                      const std::vector<std::uint64_t>& magnitudes,
                                      reference::rounding mode, bool saturate) {
    std::vector<std::uint64_t> codes;
    for (const std::uint64_t magnitude : magnitudes) {
        codes.push_back(reference::encode(to, reference::decode(from, magnitude), mode, saturate));
    }
    return codes;
}

template <class To, class From>
void check_boundaries() {
    const auto& to = reference_of<To>;
    const auto& from = reference_of<From>;
    auto inputs = reference::boundaries(to, from);
    inputs.push_back(from.max_finite());
    inputs.push_back(from.max_finite() / 10 * 9);
    const auto nearest = encode_all(to, from, inputs, reference::rounding::nearest_even, false);
    const auto saturated = encode_all(to, from, inputs, reference::rounding::nearest_even, true);
    const auto truncated = encode_all(to, from, inputs, reference::rounding::toward_zero, false);
    REQUIRE(inputs.size() > 6 * to.max_finite());

    int nearest_bad = 0;
    int saturated_bad = 0;
    int truncated_bad = 0;
    for_each_float_environment([&] {
        nearest_bad += mismatches<To, From>(inputs, nearest, nearest_even{}, overflow::to_infinity);
        saturated_bad +=
            mismatches<To, From>(inputs, saturated, nearest_even{}, overflow::saturate);
        truncated_bad +=
            mismatches<To, From>(inputs, truncated, toward_zero{}, overflow::to_infinity);
    });
    CHECK(nearest_bad == 0);
    CHECK(saturated_bad == 0);
    CHECK(truncated_bad == 0);
}

}  // namespace

TEMPLATE_TEST_CASE("every code converts to float and back as ml_dtypes does", "",
                   DEMI_TEST_NARROW_FORMATS) {
    using format = format_traits<TestType>;
    const int block_size = format::bits == 16 ? 256 : 16;
    const auto expected = golden("to_float", format::name);
    REQUIRE(static_cast<int>(expected.size()) * block_size == 1 << format::bits);
    for (const auto& [block, hash] : expected) {
        std::uint64_t actual = fnv_start;
        for (int i = 0; i < block_size; ++i) {
            const auto code = static_cast<bits_of<TestType>>(block * block_size + i);
            const float value = convert<float>(TestType::from_bits(code));
            actual = fnv(actual, is_nan(value) ? 0x7fc00000u : to_bits(value), 4);
        }
        CAPTURE(block);
        CHECK(actual == hash);
    }
}

TEMPLATE_TEST_CASE("every rounding boundary converts from float as ml_dtypes does", "",
                   DEMI_TEST_NARROW_FORMATS) {
    using format = format_traits<TestType>;
    const auto& described = reference_of<TestType>;
    const int block_size = format::bits == 16 ? 256 : 16;
    const auto expected = golden("from_float", format::name);
    REQUIRE(static_cast<int>(expected.size()) * block_size == 1 << format::bits);

    const auto rounded = [](std::uint32_t magnitude, std::uint32_t sign) {
        const auto result = convert<TestType>(from_bits<float>(magnitude | sign));
        return std::uint64_t{is_nan(result) ? format::quiet_nan_bits : result.bits()};
    };
    for (const auto& [block, hash] : expected) {
        std::uint64_t actual = fnv_start;
        for (int i = 0; i < block_size; ++i) {
            const auto code = static_cast<bits_of<TestType>>(block * block_size + i);
            const auto magnitude = static_cast<bits_of<TestType>>(code & format::magnitude_mask);
            const std::uint32_t sign = code == magnitude ? 0 : 0x80000000u;
            std::uint32_t low = 0;
            std::uint32_t middle = 0;
            std::uint32_t step = 0;
            if (magnitude <= format::max_finite_bits) {
                const double value = reference::decode(described, magnitude);
                low = float_bits(value);
                middle = float_bits((value + reference::decode(described, magnitude + 1u)) / 2);
                step = 1;
            } else {
                low = middle = format::has_infinity && magnitude == format::overflow_bits
                                   ? 0x7f800000u
                                   : 0x7fc00000u;
            }
            for (const std::uint32_t input : {low, middle, middle - step, middle + step}) {
                actual = fnv(actual, rounded(input, sign), format::bits / 8);
            }
        }
        CAPTURE(block);
        CHECK(actual == hash);
    }
}

TEMPLATE_TEST_CASE("every code widens to its value in every float environment", "",
                   DEMI_TEST_NARROW_FORMATS) {
    const auto& described = reference_of<TestType>;
    std::vector<std::uint64_t> codes;
    for (std::uint64_t code = 0; code <= described.max_finite(); ++code) codes.push_back(code);
    std::vector<std::uint64_t> singles;
    std::vector<std::uint64_t> doubles;
    for (const std::uint64_t code : codes) {
        const double value = reference::decode(described, code);
        singles.push_back(float_bits(value));
        doubles.push_back(
            reference::encode(reference::float64, value, reference::rounding::nearest_even, false));
    }
    int bad = 0;
    for_each_float_environment([&] {
        bad += mismatches<float, TestType>(codes, singles, nearest_even{}, overflow::to_infinity);
        bad += mismatches<double, TestType>(codes, doubles, toward_zero{}, overflow::saturate);
    });
    CHECK(bad == 0);
}

TEMPLATE_TEST_CASE("every boundary, midpoint and neighbour rounds right in every float environment",
                   "", DEMI_TEST_NARROW_FORMATS) {
    SECTION("from float") { check_boundaries<TestType, float>(); }
    SECTION("from double, in one rounding") { check_boundaries<TestType, double>(); }
}

TEMPLATE_TEST_CASE("every finite code converts to every other narrow format with one rounding", "",
                   DEMI_TEST_NARROW_FORMATS) {
    const auto& from = reference_of<TestType>;
    std::vector<std::uint64_t> codes;
    for (std::uint64_t code = 0; code <= from.max_finite(); ++code) codes.push_back(code);
    const auto check = [&]<class To>() {
        const auto& to = reference_of<To>;
        const auto nearest = encode_all(to, from, codes, reference::rounding::nearest_even, false);
        const auto truncated = encode_all(to, from, codes, reference::rounding::toward_zero, true);
        CHECK(mismatches<To, TestType>(codes, nearest, nearest_even{}, overflow::to_infinity) == 0);
        CHECK(mismatches<To, TestType>(codes, truncated, toward_zero{}, overflow::saturate) == 0);
    };
    check.template operator()<float16>();
    check.template operator()<bfloat16>();
    check.template operator()<float8_e4m3>();
    check.template operator()<float8_e5m2>();
}

TEST_CASE("double narrows to float as IEEE 754 says") {
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> inputs;
    for (int i = 0; i < 100000; ++i) {
        // Any exponent from below the smallest subnormal float to above the largest float.
        const std::uint64_t exponent = 1023 - 152 + random() % 282;
        const std::uint64_t mantissa = random() & 0xfffffffffffffu;
        inputs.push_back(exponent << 52 | mantissa);
        inputs.push_back(exponent << 52 | (mantissa & ~std::uint64_t{0xfffffff}));  // often a tie
        inputs.push_back(exponent << 52 | (mantissa >> 28 << 28) | 1);
    }
    const auto check = [&](auto rounding, reference::rounding mode, overflow limit) {
        const auto expected = encode_all(reference::float32, reference::float64, inputs, mode,
                                         limit == overflow::saturate);
        CHECK(mismatches<float, double>(inputs, expected, rounding, limit) == 0);
    };
    check(nearest_even{}, reference::rounding::nearest_even, overflow::to_infinity);
    check(nearest_even{}, reference::rounding::nearest_even, overflow::saturate);
    check(toward_zero{}, reference::rounding::toward_zero, overflow::to_infinity);
    CHECK(to_bits(convert<float>(from_bits<double>(1))) == 0);
    CHECK(to_bits(convert<float>(from_bits<double>(0x8000000000000001u))) == 0x80000000u);
}

TEST_CASE("float widens to double exactly, subnormals included") {
    std::mt19937_64 random(2);
    std::vector<std::uint64_t> inputs{0, 1, 2, 0x7fffff, 0x800000, 0x7f7fffff};
    for (int i = 0; i < 100000; ++i) {
        inputs.push_back(random() % 0x7f800000u);
        inputs.push_back(random() % 0x800000u);
    }
    const auto expected = encode_all(reference::float64, reference::float32, inputs,
                                     reference::rounding::nearest_even, false);
    int bad = 0;
    for_each_float_environment([&] {
        bad += mismatches<double, float>(inputs, expected, nearest_even{}, overflow::to_infinity);
    });
    CHECK(bad == 0);
}

TEMPLATE_TEST_CASE("a NaN stays a quiet NaN with its sign and its upper payload", "",
                   DEMI_TEST_NARROW_FORMATS) {
    using format = format_traits<TestType>;
    std::minstd_rand random(3);
    int bad = 0;
    for (std::uint32_t i = 0; i < 100000; ++i) {
        const std::uint32_t payload =
            i < 64 ? 1u << i % 23 : static_cast<std::uint32_t>(random() % 0x7fffffu + 1);
        const std::uint32_t sign = i % 2 << 31;
        const auto check = [&](auto rounding, overflow mode) {
            const auto code =
                convert_bits<TestType, float>(sign | 0x7f800000u | payload, rounding, mode);
            const auto expected = format::quiet_nan_bits |
                                  (payload >> (23 - format::mantissa_bits)) |
                                  (sign != 0 ? format::sign_mask : 0);
            bad += code != expected;
            // Back in float it is quiet, and holds what was kept.
            bad += convert_bits<float, TestType>(code) !=
                   (sign | 0x7fc00000u |
                    static_cast<std::uint32_t>(expected & format::mantissa_mask)
                        << (23 - format::mantissa_bits));
        };
        check(nearest_even{}, overflow::to_infinity);
        check(nearest_even{}, overflow::saturate);
        check(toward_zero{}, overflow::to_infinity);
        check(stochastic_bits{0xffffffffu}, overflow::saturate);
    }
    CHECK(bad == 0);
    CHECK(convert_bits<double, float>(0xff800001u) == 0xfff8000020000000u);
    CHECK(convert_bits<float, double>(0x7ff0000000000001u) == 0x7fc00000u);
    CHECK(convert_bits<TestType, double>(0xfff0000000000001u) ==
          (format::quiet_nan_bits | format::sign_mask));
}

TEST_CASE("a copy within one format keeps every bit, but saturates infinity on demand") {
    CHECK(convert_bits<float16, float16>(0x7c01) == 0x7c01);
    CHECK(convert_bits<float, float>(0xff800001u) == 0xff800001u);
    CHECK(convert_bits<float16, float16>(0x7c00) == 0x7c00);
    CHECK(convert_bits<float16, float16>(0xfc00, nearest_even{}, overflow::saturate) == 0xfbff);
    CHECK(convert_bits<float, float16>(0x7c00, nearest_even{}, overflow::saturate) == 0x7f7fffffu);
    CHECK(convert_bits<float8_e4m3, float8_e4m3>(0x7f, nearest_even{}, overflow::saturate) == 0x7f);
}

TEMPLATE_TEST_CASE("infinity follows the overflow mode, whatever the rounding", "",
                   DEMI_TEST_NARROW_FORMATS) {
    using format = format_traits<TestType>;
    const auto check = [](auto rounding) {
        CHECK(convert_bits<TestType, float>(0x7f800000u, rounding) == format::overflow_bits);
        CHECK(convert_bits<TestType, float>(0xff800000u, rounding) ==
              (format::overflow_bits | format::sign_mask));
        CHECK(convert_bits<TestType, float>(0x7f800000u, rounding, overflow::saturate) ==
              format::max_finite_bits);
        CHECK(convert_bits<TestType, double>(0xfff0000000000000u, rounding, overflow::saturate) ==
              (format::max_finite_bits | format::sign_mask));
    };
    check(nearest_even{});
    check(toward_zero{});
    check(stochastic_bits{0});
    check(stochastic_bits{0xffffffffu});
}

namespace {

/// Bit patterns from all over the range, with every kind of special value.
constexpr std::array<std::uint32_t, 512> sample = [] {
    std::array<std::uint32_t, 512> bits{};
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < bits.size(); ++i) {
        state = state * 1664525u + 1013904223u;
        const std::uint32_t narrow_range = 0x32000000u + (state >> 4) % 0x16000000u;
        bits[i] = i % 4 == 0 ? state : narrow_range | static_cast<std::uint32_t>(i % 2) << 31;
    }
    const std::uint32_t special[] = {0,           0x80000000u, 0x7f800000u, 0xff800000u,
                                     0x7fc00000u, 0x7f800001u, 0xffffffffu, 1,
                                     0x7f7fffffu, 0x477ff000u};
    for (std::size_t i = 0; i < std::size(special); ++i) bits[i] = special[i];
    return bits;
}();

template <class To>
constexpr std::uint64_t hash_of_sample(const std::array<std::uint32_t, 512>& inputs) {
    std::uint64_t hash = 0;
    for (const std::uint32_t bits : inputs) {
        const auto nearest = convert_bits<To, float>(bits);
        const auto cut = convert_bits<To, float>(bits, toward_zero{}, overflow::saturate);
        const auto drawn = convert_bits<To, float>(bits, stochastic_bits{0x9abcdef0u});
        const auto back = convert_bits<float, To>(nearest);
        const auto wide = convert_bits<double, To>(cut);
        const auto round = convert_bits<To, double>(convert_bits<double, float>(bits));
        for (const std::uint64_t value :
             {std::uint64_t{nearest}, std::uint64_t{cut}, std::uint64_t{drawn}, std::uint64_t{back},
              std::uint64_t{wide}, std::uint64_t{round}}) {
            hash = (hash ^ value) * 0x100000001b3u;
        }
    }
    return hash;
}

}  // namespace

TEMPLATE_TEST_CASE("constant expressions give what run time gives", "", DEMI_TEST_NARROW_FORMATS) {
    constexpr std::uint64_t at_compile_time = hash_of_sample<TestType>(sample);
    std::array<std::uint32_t, 512> inputs{};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const volatile std::uint32_t hidden = sample[i];
        inputs[i] = hidden;
    }
    for_each_float_environment([&] { CHECK(hash_of_sample<TestType>(inputs) == at_compile_time); });
}

static_assert(convert<float16>(1.0f).bits() == 0x3c00);
static_assert(convert<float16>(-65520.0f).bits() == 0xfc00);
static_assert(convert<float16>(-65520.0f, toward_zero{}).bits() == 0xfbff);
static_assert(convert<float>(float16::from_bits(1)) == 0x1p-24f);
static_assert(convert<double>(float8_e5m2::from_bits(1)) == 0x1p-16);
static_assert(convert<bfloat16>(0x1p-133f).bits() == 1);
static_assert(convert<float16>(bfloat16(1.5f)) == 1.5f);
