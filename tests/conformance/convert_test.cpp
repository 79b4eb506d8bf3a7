// SPDX-License-Identifier: MIT
// All 2^32 floats to every narrow format, each sign on a thread of its own.
#include <demi/precision/convert.hpp>

#include <cfenv>
#include <conformance/reference_conversion.hpp>
#include <cstdint>
#include <functional>
#include <support/catch.hpp>
#include <support/cpu.hpp>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace demi;

namespace {

constexpr std::uint32_t float_infinity = 0x7f800000;

/// Calls `count_mismatches(sign)` for both signs at once, with a hostile float environment.
std::uint64_t for_both_signs(const std::function<std::uint64_t(std::uint32_t)>& count_mismatches) {
    std::uint64_t mismatches[2] = {};
    const auto run = [&](std::uint32_t sign) {
        std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
        _mm_setcsr(_mm_getcsr() | 0x8040);  // FTZ and DAZ
#endif
        mismatches[sign] = count_mismatches(sign << 31);
    };
    std::thread negative(run, 1);
    std::thread positive(run, 0);
    negative.join();
    positive.join();
    return mismatches[0] + mismatches[1];
}

/// For every magnitude of the format, the first float that rounds to the next one.
std::vector<std::uint32_t> upper_ends(const reference::format& format, reference::rounding mode) {
    std::vector<std::uint32_t> ends;
    for (std::uint64_t code = 0; code <= format.max_finite(); ++code) {
        const double next = reference::decode(format, code + 1);
        const double middle = (reference::decode(format, code) + next) / 2;
        const bool nearest = mode == reference::rounding::nearest_even;
        const auto end = static_cast<std::uint32_t>(reference::encode(
            reference::float32, nearest ? middle : next, reference::rounding::nearest_even, false));
        ends.push_back(nearest && code % 2 == 0 ? end + 1 : end);
    }
    return ends;
}

/// Floats between two bit patterns of one sign that do not convert to `expected`.
template <class To, class Rounding>
std::uint64_t mismatches_between(std::uint32_t first, std::uint32_t end, std::uint64_t expected,
                                 Rounding rounding, overflow mode) {
    std::uint64_t count = 0;
    for (std::uint32_t bits = first; bits != end; ++bits) {
        count += convert_bits<To, float>(bits, rounding, mode) != expected;
    }
    return count;
}

template <class To, class Rounding>
std::uint64_t mismatches_of_numbers(const reference::format& format,
                                    const std::vector<std::uint32_t>& ends, Rounding rounding,
                                    overflow mode, std::uint64_t beyond, std::uint32_t sign) {
    const std::uint64_t target_sign = sign != 0 ? format.sign_bit() : 0;
    std::uint64_t count = 0;
    std::uint32_t first = 0;
    for (std::uint64_t code = 0; code < ends.size(); ++code) {
        count += mismatches_between<To>(sign | first, sign | ends[code], code | target_sign,
                                        rounding, mode);
        first = ends[code];
    }
    return count + mismatches_between<To>(sign | first, sign | float_infinity, beyond | target_sign,
                                          rounding, mode);
}

template <class To>
std::uint64_t mismatches_of_nan(const reference::format& format, std::uint32_t sign) {
    const std::uint64_t target_sign = sign != 0 ? format.sign_bit() : 0;
    const int dropped = 23 - format.mantissa_bits;
    const std::uint64_t quiet = std::uint64_t{1} << (format.mantissa_bits - 1);
    std::uint64_t count = 0;
    for (std::uint32_t payload = 1; payload <= 0x7fffff; ++payload) {
        const std::uint64_t kept = format.has_infinity
                                       ? format.exponent_field() | quiet | payload >> dropped
                                       : format.max_finite() + 1;
        count += convert_bits<To, float>(sign | float_infinity | payload) != (kept | target_sign);
    }
    return count;
}

template <class To>
void check_all_floats(const reference::format& format) {
    const auto nearest = upper_ends(format, reference::rounding::nearest_even);
    const auto truncated = upper_ends(format, reference::rounding::toward_zero);
    CHECK(for_both_signs([&](std::uint32_t sign) {
              return mismatches_of_numbers<To>(format, nearest, nearest_even{},
                                               overflow::to_infinity, format.infinity_or_nan(),
                                               sign) +
                     mismatches_of_nan<To>(format, sign);
          }) == 0);
    CHECK(for_both_signs([&](std::uint32_t sign) {
              return mismatches_of_numbers<To>(format, nearest, nearest_even{}, overflow::saturate,
                                               format.max_finite(), sign);
          }) == 0);
    CHECK(for_both_signs([&](std::uint32_t sign) {
              return mismatches_of_numbers<To>(format, truncated, toward_zero{},
                                               overflow::to_infinity, format.max_finite(), sign);
          }) == 0);
}

}  // namespace

TEST_CASE("all 2^32 floats convert to float16 as the reference says") {
    check_all_floats<float16>(reference::float16);
}

TEST_CASE("all 2^32 floats convert to bfloat16 as the reference says") {
    check_all_floats<bfloat16>(reference::bfloat16);
}

TEST_CASE("all 2^32 floats convert to E4M3 as the reference says") {
    check_all_floats<float8_e4m3>(reference::float8_e4m3);
}

TEST_CASE("all 2^32 floats convert to E5M2 as the reference says") {
    check_all_floats<float8_e5m2>(reference::float8_e5m2);
}

#if defined(__x86_64__)
namespace {

template <int Control, class Rounding>
[[gnu::target("avx,f16c")]] std::uint64_t mismatches_with_hardware(std::uint32_t sign) {
    std::uint64_t count = 0;
    alignas(32) std::uint32_t inputs[8];
    alignas(16) std::uint16_t expected[8];
    for (std::uint32_t base = 0; base < 0x80000000u; base += 8) {
        for (std::uint32_t lane = 0; lane < 8; ++lane) inputs[lane] = sign | base | lane;
        const __m256i loaded = _mm256_load_si256(reinterpret_cast<const __m256i*>(inputs));
        _mm_store_si128(reinterpret_cast<__m128i*>(expected),
                        _mm256_cvtps_ph(_mm256_castsi256_ps(loaded), Control));
        for (int lane = 0; lane < 8; ++lane) {
            count += convert_bits<float16, float>(inputs[lane], Rounding{}) != expected[lane];
        }
    }
    return count;
}

}  // namespace

TEST_CASE("all 2^32 floats convert to float16 as F16C does, NaN payloads included") {
    if (!cpu_has_f16c()) {
        WARN("skipped: this CPU has no F16C");
        return;
    }
    CHECK(for_both_signs(mismatches_with_hardware<_MM_FROUND_TO_NEAREST_INT, nearest_even>) == 0);
    CHECK(for_both_signs(mismatches_with_hardware<_MM_FROUND_TO_ZERO, toward_zero>) == 0);
}
#endif
