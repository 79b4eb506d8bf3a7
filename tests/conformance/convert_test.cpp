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
    const auto work = [&](std::uint32_t sign) {
        std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
        _mm_setcsr(_mm_getcsr() | 0x8040);  // FTZ and DAZ
#endif
        mismatches[sign] = count_mismatches(sign << 31);
    };
    std::thread negative(work, 1);
    std::thread positive(work, 0);
    negative.join();
    positive.join();
    return mismatches[0] + mismatches[1];
}

/// What a run of consecutive floats converts to.
struct run {
    std::uint32_t end;  ///< bits of the first float after it
    std::uint64_t nearest;
    std::uint64_t saturated;
    std::uint64_t truncated;
};

/// All finite floats that are not negative. Between two neighbours of the format there are two
/// runs: up to the midpoint, which goes to the even one, and from there.
std::vector<run> runs_of(const reference::format& format) {
    const auto float_bits = [](double value) {
        return static_cast<std::uint32_t>(
            reference::encode(reference::float32, value, reference::rounding::nearest_even, false));
    };
    std::vector<run> runs;
    const std::uint64_t last = format.max_finite();
    for (std::uint64_t code = 0; code <= last; ++code) {
        const double next = reference::decode(format, code + 1);
        const double middle = (reference::decode(format, code) + next) / 2;
        const std::uint32_t middle_end = float_bits(middle) + (code % 2 == 0 ? 1 : 0);
        runs.push_back({middle_end, code, code, code});
        runs.push_back({float_bits(next), code + 1, code < last ? code + 1 : last, code});
    }
    runs.push_back({float_infinity, format.infinity_or_nan(), last, last});
    return runs;
}

template <class To>
std::uint64_t mismatches_of_numbers(const reference::format& format, const std::vector<run>& runs,
                                    std::uint32_t sign) {
    const std::uint64_t target_sign = sign != 0 ? format.sign_bit() : 0;
    std::uint64_t count = 0;
    std::uint32_t magnitude = 0;
    for (const run& expected : runs) {
        for (; magnitude < expected.end; ++magnitude) {
            const std::uint32_t bits = sign | magnitude;
            const std::uint64_t nearest = convert_bits<To, float>(bits);
            const std::uint64_t saturated =
                convert_bits<To, float>(bits, nearest_even{}, overflow::saturate);
            const std::uint64_t truncated = convert_bits<To, float>(bits, toward_zero{});
            count += nearest != (expected.nearest | target_sign) ||
                     saturated != (expected.saturated | target_sign) ||
                     truncated != (expected.truncated | target_sign);
        }
    }
    return count + (magnitude != float_infinity);
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
    const auto runs = runs_of(format);
    CHECK(for_both_signs([&](std::uint32_t sign) {
              return mismatches_of_numbers<To>(format, runs, sign) +
                     mismatches_of_nan<To>(format, sign);
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

[[gnu::target("avx,f16c")]] std::uint64_t mismatches_with_hardware(std::uint32_t sign) {
    std::uint64_t count = 0;
    alignas(32) std::uint32_t inputs[8];
    alignas(16) std::uint16_t nearest[8];
    alignas(16) std::uint16_t truncated[8];
    for (std::uint32_t base = 0; base < 0x80000000u; base += 8) {
        for (std::uint32_t lane = 0; lane < 8; ++lane) inputs[lane] = sign | base | lane;
        const __m256 floats =
            _mm256_castsi256_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(inputs)));
        _mm_store_si128(reinterpret_cast<__m128i*>(nearest),
                        _mm256_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT));
        _mm_store_si128(reinterpret_cast<__m128i*>(truncated),
                        _mm256_cvtps_ph(floats, _MM_FROUND_TO_ZERO));
        for (int lane = 0; lane < 8; ++lane) {
            count += convert_bits<float16, float>(inputs[lane]) != nearest[lane] ||
                     convert_bits<float16, float>(inputs[lane], toward_zero{}) != truncated[lane];
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
    CHECK(for_both_signs(mismatches_with_hardware) == 0);
}
#endif
