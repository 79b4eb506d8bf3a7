// SPDX-License-Identifier: MIT
/// Compiled with -ffast-math, which also flushes subnormals: demi's promises must hold all the
/// same.
#include <all_headers.hpp>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* promise) {
    if (!holds) {
        std::printf("broken under fast-math: %s\n", promise);
        ++failures;
    }
}

template <class T>
bool survives_a_round_trip() {
    for (std::uint32_t code = 0; code <= 0xffff; ++code) {
        const auto value = demi::from_bits<T>(static_cast<demi::bits_of<T>>(code));
        const auto back = demi::to_bits(demi::convert<T>(demi::convert<float>(value)));
        if (demi::is_nan(value) ? !demi::is_nan(demi::from_bits<T>(back)) : back != code) {
            return false;
        }
    }
    return true;
}

template <class T>
bool is_found(demi::bits_of<T> bits, demi::non_finite kind) {
    demi::host_backend where;
    std::vector<T> gradients(1000, demi::convert<T>(1.0f));
    if (!demi::measure_gradients(where, gradients).finite()) return false;
    gradients[700] = demi::from_bits<T>(bits);
    const auto found = demi::measure_gradients(where, gradients);
    return found.first_kind == kind && found.first_non_finite.index == 700;
}

/// What the epilogues that watch find in a result of ones but for one row: amax and the flag.
bool is_watched(std::uint32_t bits, float amax, std::uint32_t flag) {
    std::vector<float> column(9, 1.0f);
    const std::vector<float> row(40, 1.0f);
    std::vector<float> result(9 * 40);
    column[4] = demi::from_bits<float>(bits);
    float amax_found = 0;
    std::uint32_t flag_found = 0;
    demi::gemm(demi::host_backend{}, demi::matrix_view<const float>(column.data(), 9, 1),
               demi::matrix_view<const float>(row.data(), 1, 40),
               demi::matrix_view<float>(result.data(), 9, 40), {},
               demi::raise_amax(&amax_found) | demi::flag_non_finite<demi::float16>(&flag_found));
    return amax_found == amax && flag_found == flag;
}

}  // namespace

int main() {
    using demi::non_finite;
    expect(survives_a_round_trip<demi::float16>(), "float16 survives a round trip through float");
    expect(survives_a_round_trip<demi::bfloat16>(), "bfloat16 survives a round trip through float");
    expect(is_found<float>(0x7fc00000, non_finite::nan), "a float NaN is found");
    expect(is_found<float>(0x7f800000, non_finite::plus_infinity), "a float infinity is found");
    expect(is_found<float>(0xff800000, non_finite::minus_infinity),
           "a negative float infinity is found");
    expect(is_found<double>(0x7ff0000000000001, non_finite::nan), "a double NaN is found");
    expect(is_found<demi::float16>(0x7e00, non_finite::nan), "a float16 NaN is found");
    expect(is_found<demi::float16>(0xfc00, non_finite::minus_infinity),
           "a float16 infinity is found");
    expect(is_found<demi::bfloat16>(0x7f80, non_finite::plus_infinity),
           "a bfloat16 infinity is found");
    expect(is_watched(0x7fc00000, 1, 1), "a NaN is flagged and no amax");
    expect(is_watched(0xff800000, 1, 1), "an infinity is flagged and no amax");
    expect(is_watched(demi::to_bits(-70'000.0f), 70'000, 1), "what float16 cannot hold is flagged");
    expect(is_watched(demi::to_bits(-60'000.0f), 60'000, 0), "what float16 holds is not flagged");
    return failures == 0 ? 0 : 1;
}
