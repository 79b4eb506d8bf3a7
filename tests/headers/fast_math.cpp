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
    return failures == 0 ? 0 : 1;
}
