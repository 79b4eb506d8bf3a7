// SPDX-License-Identifier: MIT
#include <demi/host/lanes.hpp>
#include <demi/precision/format_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <support/catch.hpp>
#include <unit/host/available_isas.hpp>
#include <vector>

// This file is compiled without the wider instruction sets: packs must work here all the same.

namespace {

using demi::abs;
using demi::is_finite;
using demi::is_nan;
using demi::max;
using demi::min;
using demi::select;
using demi::sqrt;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

const std::vector<float> interesting = {0.0f,  -0.0f,    1.0f,      -1.0f, 3.5f, -2.25f, 1e-42f,
                                        1e30f, infinity, -infinity, nan,   2.0f, 16.0f,  0.5f};

bool same(float a, float b) {
    return is_nan(a) ? is_nan(b)
                     : __builtin_bit_cast(std::uint32_t, a) == __builtin_bit_cast(std::uint32_t, b);
}

/// Puts every pair of interesting numbers through a function, in lanes and one by one.
template <int Count, class Function>
int mismatches(const Function& function) {
    constexpr std::size_t count = Count;
    int wrong = 0;
    const std::size_t size = interesting.size();
    for (std::size_t pair = 0; pair < size * size; ++pair) {
        float a[count], b[count], result[count];
        for (std::size_t i = 0; i < count; ++i) {
            a[i] = interesting[(pair + i) % size];
            b[i] = interesting[(pair + pair / size + i) % size];
        }
        demi::lanes<Count>(function(demi::lanes<Count>::load(a), demi::lanes<Count>::load(b)))
            .store(result);
        for (std::size_t i = 0; i < count; ++i) wrong += !same(result[i], function(a[i], b[i]));
    }
    return wrong;
}

template <int Count>
void check_arithmetic() {
    CHECK(mismatches<Count>([](auto a, auto b) { return a + b; }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return a - b; }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return a * b; }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return a / b; }) == 0);
    CHECK(mismatches<Count>([](auto a, auto) { return -a; }) == 0);
    CHECK(mismatches<Count>([](auto a, auto) { return +a; }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) {
              a += b;
              a *= 3.0f;
              a -= b;
              a /= b;
              return a;
          }) == 0);
    CHECK(mismatches<Count>([](auto a, auto) { return 2.0f * a + 1.0f - a / 4.0f; }) == 0);
}

template <int Count>
void check_functions() {
    CHECK(mismatches<Count>([](auto a, auto) { return sqrt(a); }) == 0);
    CHECK(mismatches<Count>([](auto a, auto) { return abs(a); }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return min(a, b); }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return max(a, b); }) == 0);
    CHECK(mismatches<Count>([](auto a, auto) { return min(max(a, -1.5f), 2.5f); }) == 0);
}

template <int Count>
void check_comparisons() {
    CHECK(mismatches<Count>([](auto a, auto b) { return select(a < b, a, b); }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return select(a <= b, a, 7.0f); }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return select(a > b, a, b); }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return select(a >= b, a, b); }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return select(a == b, a, b + 1.0f); }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return select(a != b, a, b + 1.0f); }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return select(a < 1.0f && !(b < 0.0f), a, b); }) ==
          0);
    CHECK(mismatches<Count>([](auto a, auto b) { return select(a > 1.0f || b > 0.0f, a, b); }) ==
          0);
    CHECK(mismatches<Count>([](auto a, auto b) { return select(is_finite(a), a, b); }) == 0);
    CHECK(mismatches<Count>([](auto a, auto b) { return select(is_nan(a), b, a); }) == 0);
}

template <int Count>
void check_wide() {
    constexpr std::size_t count = Count;
    float numbers[count];
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = 0x1p63f * static_cast<float>(i + 1);
        sum += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
    }
    using traits = demi::real_traits<demi::lanes<Count>>;
    const auto pack = demi::lanes<Count>::load(numbers);
    typename traits::wide total{};
    total = total + widen(pack) * widen(pack);
    CHECK(sum_lanes(total) == sum);
    total += total;
    total -= widen(pack) * 0.0;
    total *= 0.5;
    CHECK(sum_lanes(total) == sum);

    // 16 squares of at most 2^8 times 2^126 are too many for a float, but not those of halves.
    typename traits::narrow narrow{};
    add_square(narrow, pack * 0.0625f);
    CHECK(sum_lanes(narrow) == sum / 256);

    numbers[count / 2] = -infinity;
    typename traits::bits largest{};
    CHECK(max_lanes(largest) == 0);
    largest = max(largest, magnitude_bits(pack));
    CHECK(max_lanes(largest) < traits::infinity_bits);
    largest = max(largest, magnitude_bits(demi::lanes<Count>::load(numbers)));
    CHECK(max_lanes(largest) == traits::infinity_bits);
}

template <int Count>
void check_memory() {
    constexpr std::size_t count = Count;
    std::vector<float> from(count + 3), to(count + 3, -1.0f);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
    demi::lanes<Count>::load(from.data() + 1).store(to.data() + 2);
    int wrong = to[0] != -1.0f || to[1] != -1.0f || to[count + 2] != -1.0f;
    for (std::size_t i = 0; i < count; ++i) wrong += to[i + 2] != from[i + 1];
    CHECK(wrong == 0);
    to.assign(to.size(), -1.0f);
    demi::lanes<Count>().store(to.data());
    demi::lanes<Count>(2.5f).store(to.data() + 2);
    CHECK(to[0] == 0.0f);
    CHECK(to[2] == 2.5f);
    CHECK(to[count + 1] == 2.5f);
}

template <int Count>
void check_pack() {
    CAPTURE(Count);
    check_arithmetic<Count>();
    check_functions<Count>();
    check_comparisons<Count>();
    check_wide<Count>();
    check_memory<Count>();
}

}  // namespace

TEST_CASE("a pack of lanes computes what each number alone would") {
    check_pack<4>();
#if defined(__x86_64__)
    if (demi::detected_host_isa() >= demi::host_isa::avx2) check_pack<8>();
    if (demi::detected_host_isa() >= demi::host_isa::avx512) check_pack<16>();
#endif
}
