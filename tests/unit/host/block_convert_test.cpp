// SPDX-License-Identifier: MIT
#include <demi/host/block_convert.hpp>
#include <demi/host/detail/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <support/catch.hpp>
#include <type_traits>
#include <unit/host/available_isas.hpp>
#include <vector>

namespace {

using demi::bfloat16;
using demi::float16;
using demi::float8_e4m3;
using demi::float8_e5m2;
using demi::host_isa;

template <class T>
std::vector<T> all_codes() {
    std::vector<T> codes;
    for (std::uint32_t code = 0; code < 1u << (8 * sizeof(T)); ++code) {
        codes.push_back(demi::from_bits<T>(static_cast<demi::bits_of<T>>(code)));
    }
    return codes;
}

/// Every value of `T` as a float, everything close to the middle between two of them, NaNs of many
/// payloads, and random bits.
template <class T>
std::vector<float> boundaries() {
    std::vector<std::uint32_t> bits;
    const auto around = [&](std::uint32_t center) {
        for (const std::uint32_t distance : {0u, 1u, 2u}) {
            bits.push_back(center + distance);
            bits.push_back(center - distance);
        }
    };
    const auto codes = all_codes<T>();
    for (std::size_t i = 0; i < codes.size(); ++i) {
        const auto here = demi::convert_bits<float, T>(demi::to_bits(codes[i]));
        around(here);
        if (i + 1 == codes.size()) continue;
        const auto next = demi::convert_bits<float, T>(demi::to_bits(codes[i + 1]));
        const auto middle = (static_cast<double>(demi::from_bits<float>(here)) +
                             static_cast<double>(demi::from_bits<float>(next))) /
                            2;
        around(demi::to_bits(static_cast<float>(middle)));
    }
    std::mt19937_64 random(7);
    for (int i = 0; i < 200000; ++i) bits.push_back(static_cast<std::uint32_t>(random()));
    for (int i = 0; i < 20000; ++i) {
        bits.push_back(static_cast<std::uint32_t>(random()) | 0x7f800000u);  // NaN of any payload
        bits.push_back(static_cast<std::uint32_t>(random()) & 0x807fffffu);  // subnormal
    }
    for (std::uint32_t i = 0; i < 23; ++i) bits.push_back(0x7f800000u | (1u << i));
    std::vector<float> values(bits.size());
    __builtin_memcpy(values.data(), bits.data(), bits.size() * sizeof(float));
    return values;
}

/// Bits through memory: a NaN must not pass through a floating-point register here.
template <class T>
demi::bits_of<T> bits_at(const std::vector<T>& values, std::size_t i) {
    demi::bits_of<T> bits;
    __builtin_memcpy(&bits, values.data() + i, sizeof bits);
    return bits;
}

template <class To, class From, class Rounding>
int mismatches(host_isa isa, const std::vector<From>& from, Rounding rounding) {
    std::vector<To> converted(from.size());
    demi::convert_block(isa, from.data(), converted.data(), from.size(), rounding);
    int count = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto expected = demi::convert_bits<To, From>(bits_at(from, i), rounding);
        count += bits_at(converted, i) != expected;
    }
    return count;
}

template <class To>
int stochastic_mismatches(host_isa isa, const std::vector<float>& from,
                          demi::stochastic_block rounding) {
    std::vector<To> converted(from.size());
    demi::convert_block(isa, from.data(), converted.data(), from.size(), rounding);
    int count = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const demi::stochastic_bits bits{demi::random_bits(rounding.key, rounding.first + i)};
        const auto expected = demi::convert_bits<To, float>(bits_at(from, i), bits);
        count += bits_at(converted, i) != expected;
    }
    return count;
}

template <class T>
void check_format() {
    const auto codes = all_codes<T>();
    const auto values = boundaries<T>();
    for (const host_isa isa : demi_test::available_isas()) {
        CAPTURE(std::string(demi::name(isa)));
        CHECK(mismatches<float>(isa, codes, demi::nearest_even{}) == 0);
        CHECK(mismatches<T>(isa, values, demi::nearest_even{}) == 0);
        CHECK(mismatches<T>(isa, values, demi::toward_zero{}) == 0);
        CHECK(stochastic_mismatches<T>(isa, values, {0x123456789abcdef0u, 5}) == 0);
    }
}

#if defined(__x86_64__)
/// Sets flush-to-zero, denormals-are-zero and rounding towards minus infinity for its lifetime.
class strange_floating_point {
public:
    strange_floating_point() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040u | 0x2000u); }
    ~strange_floating_point() { _mm_setcsr(saved_); }

private:
    unsigned saved_;
};
#endif

}  // namespace

TEMPLATE_TEST_CASE("a block converts exactly as one value does, on every instruction set", "",
                   float16, bfloat16, float8_e4m3, float8_e5m2) {
    check_format<TestType>();
}

#if defined(__x86_64__)
TEMPLATE_TEST_CASE("flush flags and rounding mode of the caller do not change a conversion", "",
                   float16, bfloat16, float8_e4m3, float8_e5m2) {
    const auto codes = all_codes<TestType>();
    const auto values = boundaries<TestType>();
    for (const host_isa isa : demi_test::available_isas()) {
        std::vector<float> wide(codes.size()), strange_wide(codes.size());
        std::vector<TestType> narrow(values.size()), strange_narrow(values.size());
        std::vector<TestType> cut(values.size()), strange_cut(values.size());
        demi::convert_block(isa, codes.data(), wide.data(), wide.size(), demi::nearest_even{});
        demi::convert_block(isa, values.data(), narrow.data(), narrow.size(), demi::nearest_even{});
        demi::convert_block(isa, values.data(), cut.data(), cut.size(), demi::toward_zero{});
        {
            const strange_floating_point mode;
            demi::convert_block(isa, codes.data(), strange_wide.data(), wide.size(),
                                demi::nearest_even{});
            demi::convert_block(isa, values.data(), strange_narrow.data(), narrow.size(),
                                demi::nearest_even{});
            demi::convert_block(isa, values.data(), strange_cut.data(), cut.size(),
                                demi::toward_zero{});
        }
        CAPTURE(std::string(demi::name(isa)));
        CHECK(std::memcmp(wide.data(), strange_wide.data(), wide.size() * sizeof(float)) == 0);
        CHECK(std::memcmp(narrow.data(), strange_narrow.data(), narrow.size() * sizeof(TestType)) ==
              0);
        CHECK(std::memcmp(cut.data(), strange_cut.data(), cut.size() * sizeof(TestType)) == 0);
    }
}
#endif

TEST_CASE("a block converts between two narrow formats exactly as one value does") {
    for (const host_isa isa : demi_test::available_isas()) {
        CAPTURE(std::string(demi::name(isa)));
        CHECK(mismatches<bfloat16>(isa, all_codes<float16>(), demi::nearest_even{}) == 0);
        CHECK(mismatches<bfloat16>(isa, all_codes<float16>(), demi::toward_zero{}) == 0);
        CHECK(mismatches<float16>(isa, all_codes<bfloat16>(), demi::nearest_even{}) == 0);
        CHECK(mismatches<float8_e4m3>(isa, all_codes<float16>(), demi::toward_zero{}) == 0);
        CHECK(mismatches<float8_e5m2>(isa, all_codes<bfloat16>(), demi::nearest_even{}) == 0);
        CHECK(mismatches<float8_e5m2>(isa, all_codes<float8_e4m3>(), demi::nearest_even{}) == 0);
    }
}

namespace {

/// Streams into every place within a cache line and compares with the conversion of one value.
template <class To, class From, class Rounding>
int streamed_mismatches(host_isa isa, const std::vector<From>& from, Rounding rounding) {
    constexpr std::size_t guard = 64 / sizeof(To);
    int count = 0;
    for (const std::size_t length : {0u, 1u, 31u, 64u, 100u, 1000u, 3333u}) {
        for (std::size_t offset = 0; offset < guard; offset += 1 + offset % 5) {
            std::vector<To> to(length + 3 * guard);
            std::memset(static_cast<void*>(to.data()), 0x5a, to.size() * sizeof(To));
            const auto untouched = bits_at(to, 0);
            demi::detail::convert_stream(isa, from.data() + offset, to.data() + guard + offset,
                                         length, rounding);
            demi::detail::finish_stream();
            for (std::size_t i = 0; i < to.size(); ++i) {
                const bool inside = i >= guard + offset && i < guard + offset + length;
                auto expected = untouched;
                if (inside && std::is_same_v<Rounding, demi::stochastic_block>) {
                    const demi::stochastic_bits bits{
                        demi::random_bits(123, 45 + i - guard - offset)};
                    expected = demi::convert_bits<To, From>(bits_at(from, i - guard), bits);
                } else if constexpr (!std::is_same_v<Rounding, demi::stochastic_block>) {
                    if (inside) {
                        expected = demi::convert_bits<To, From>(bits_at(from, i - guard), rounding);
                    }
                }
                count += bits_at(to, i) != expected;
            }
        }
    }
    return count;
}

}  // namespace

TEST_CASE("a block streamed past the caches is the same block, wherever it lies") {
    std::mt19937_64 random(13);
    std::vector<float> floats(4000);
    for (auto& value : floats) {
        const auto bits = static_cast<std::uint32_t>(random());
        __builtin_memcpy(&value, &bits, sizeof bits);
    }
    const auto halves = all_codes<float16>();
    const auto brains = all_codes<bfloat16>();
    std::vector<float8_e4m3> bytes(4000);
    for (auto& value : bytes)
        value = demi::from_bits<float8_e4m3>(static_cast<std::uint8_t>(random()));
    constexpr demi::nearest_even nearest;
    for (const host_isa isa : demi_test::available_isas()) {
        CAPTURE(std::string(demi::name(isa)));
        CHECK(streamed_mismatches<float16>(isa, floats, nearest) == 0);
        CHECK(streamed_mismatches<bfloat16>(isa, floats, nearest) == 0);
        CHECK(streamed_mismatches<bfloat16>(isa, floats, demi::toward_zero{}) == 0);
        CHECK(streamed_mismatches<float8_e4m3>(isa, floats, nearest) == 0);
        CHECK(streamed_mismatches<float8_e5m2>(isa, floats, nearest) == 0);
        CHECK(streamed_mismatches<float>(isa, halves, nearest) == 0);
        CHECK(streamed_mismatches<float>(isa, brains, nearest) == 0);
        CHECK(streamed_mismatches<float>(isa, bytes, nearest) == 0);
        CHECK(streamed_mismatches<float16>(isa, brains, nearest) == 0);
        CHECK(streamed_mismatches<bfloat16>(isa, halves, nearest) == 0);
        CHECK(streamed_mismatches<double>(isa, floats, nearest) == 0);
        CHECK(streamed_mismatches<float>(isa, floats, nearest) == 0);
        const demi::stochastic_block random_rounding{123, 45};
        CHECK(streamed_mismatches<bfloat16>(isa, floats, random_rounding) == 0);
        CHECK(streamed_mismatches<float16>(isa, floats, random_rounding) == 0);
    }
}

TEST_CASE("a block long enough to be streamed in parts is the same block") {
    constexpr std::size_t count = 2 * demi::detail::stream_elements + 777;
    std::vector<float> from(count);
    std::mt19937_64 random(14);
    for (auto& value : from) {
        const auto bits = static_cast<std::uint32_t>(random());
        __builtin_memcpy(&value, &bits, sizeof bits);
    }
    const demi::stochastic_block rounding{7, 11};
    for (const host_isa isa : demi_test::available_isas()) {
        CAPTURE(std::string(demi::name(isa)));
        std::vector<bfloat16> to(count), streamed(count);
        const auto same = [&] {
            return std::memcmp(to.data(), streamed.data(), count * sizeof(bfloat16)) == 0;
        };
        demi::convert_block(isa, from.data(), to.data(), count, rounding);
        demi::detail::convert_stream(isa, from.data(), streamed.data(), count, rounding);
        demi::detail::finish_stream();
        CHECK(same());
        demi::convert_block(isa, from.data(), to.data(), count, demi::nearest_even{});
        demi::detail::convert_stream(isa, from.data(), streamed.data(), count,
                                     demi::nearest_even{});
        demi::detail::finish_stream();
        CHECK(same());
    }
}

TEST_CASE("streaming goes on across a multiple of 2^32 random indices") {
    std::vector<float> from(3000);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = 1.0f + 0.001f * static_cast<float>(i);
    const demi::stochastic_block rounding{99, (std::uint64_t{1} << 32) - 777};
    for (const host_isa isa : demi_test::available_isas()) {
        std::vector<bfloat16> to(from.size()), streamed(from.size());
        demi::convert_block(isa, from.data(), to.data(), from.size(), rounding);
        demi::detail::convert_stream(isa, from.data(), streamed.data(), from.size(), rounding);
        demi::detail::finish_stream();
        CHECK(to == streamed);
    }
}

TEST_CASE("blocks with some zeros and subnormals among other numbers are rounded to bfloat16") {
    std::mt19937_64 random(17);
    for (const host_isa isa : demi_test::available_isas()) {
        int wrong = 0;
        for (int round = 0; round < 200; ++round) {
            std::vector<float> from(100);
            for (auto& value : from) {
                auto bits = static_cast<std::uint32_t>(random());
                if (random() % 32 == 0) bits &= 0x80000000u;
                if (random() % 64 == 0) bits &= 0x807fffffu;
                __builtin_memcpy(&value, &bits, sizeof bits);
            }
            wrong += mismatches<bfloat16>(isa, from, demi::nearest_even{});
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("blocks of any length and alignment touch exactly their own elements") {
    std::vector<float> from(200);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = 0.37f * static_cast<float>(i) - 20.0f;
    const auto marker = demi::from_bits<bfloat16>(0xbeef);
    const auto half_marker = demi::from_bits<float16>(0xbeef);
    const auto byte_marker = demi::from_bits<float8_e4m3>(0x5a);
    int wrong = 0;
    for (const host_isa isa : demi_test::available_isas()) {
        for (std::size_t offset = 0; offset < 5; ++offset) {
            for (std::size_t count = 0; count < 150; ++count) {
                std::vector<bfloat16> to(200, marker);
                std::vector<float16> half(200, half_marker);
                std::vector<float8_e4m3> byte(200, byte_marker);
                std::vector<float> wide(200, 0.5f);
                demi::convert_block(isa, from.data() + offset, to.data() + offset, count,
                                    demi::nearest_even{});
                demi::convert_block(isa, from.data() + offset, half.data() + offset, count,
                                    demi::nearest_even{});
                demi::convert_block(isa, from.data() + offset, byte.data() + offset, count,
                                    demi::nearest_even{});
                demi::convert_block(isa, byte.data() + offset, wide.data() + offset, count,
                                    demi::nearest_even{});
                for (std::size_t i = 0; i < to.size(); ++i) {
                    const bool inside = i >= offset && i < offset + count;
                    wrong += demi::to_bits(to[i]) !=
                             (inside ? demi::to_bits(bfloat16(from[i])) : 0xbeef);
                    wrong += demi::to_bits(half[i]) !=
                             (inside ? demi::to_bits(float16(from[i])) : 0xbeef);
                    wrong += demi::to_bits(byte[i]) !=
                             (inside ? demi::to_bits(float8_e4m3(from[i])) : 0x5a);
                    wrong += demi::to_bits(wide[i]) !=
                             demi::to_bits(inside ? float{float8_e4m3(from[i])} : 0.5f);
                }
            }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("random bits of a block go on across a multiple of 2^32") {
    std::vector<float> from(300);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = 1.0f + 0.001f * static_cast<float>(i);
    for (const host_isa isa : demi_test::available_isas()) {
        CHECK(stochastic_mismatches<bfloat16>(isa, from, {99, (std::uint64_t{3} << 32) - 100}) ==
              0);
        CHECK(stochastic_mismatches<float16>(isa, from, {99, (std::uint64_t{1} << 32) - 7}) == 0);
    }
}
