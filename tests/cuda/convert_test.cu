// SPDX-License-Identifier: MIT
#include <demi/cuda/cuda_backend.cuh>
#include <demi/precision/convert.hpp>
#include <demi/precision/random_bits.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <support/catch.hpp>
#include <type_traits>
#include <vector>

namespace {

using demi::bfloat16;
using demi::float16;
using demi::float8_e4m3;
using demi::float8_e5m2;
using demi::overflow;

/// What one value becomes in every way there is; one conversion function fits host and device.
template <class To>
struct conversions {
    demi::bits_of<To> bits[6];

    friend bool operator==(const conversions& a, const conversions& b) {
        for (int i = 0; i < 6; ++i) {
            if (a.bits[i] != b.bits[i]) return false;
        }
        return true;
    }
};

demi::stochastic_bits DEMI_HD noise_of(std::uint64_t index) {
    return {demi::random_bits(17, index)};
}

template <class From, class To>
struct conversion_pass {
    const demi::bits_of<From>* from;
    conversions<To>* to;
    std::uint64_t count;

    __device__ void run() const {
        const std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x;
        if (i >= count) return;
        const From value = demi::from_bits<From>(from[i]);
        for (int mode = 0; mode < 2; ++mode) {
            const auto beyond = static_cast<overflow>(mode);
            const auto put = [&](int place, To result) {
                to[i].bits[3 * mode + place] = demi::to_bits(result);
            };
            put(0, demi::device_convert<To>(value, demi::nearest_even{}, beyond));
            put(1, demi::device_convert<To>(value, demi::toward_zero{}, beyond));
            put(2, demi::device_convert<To>(value, noise_of(i), beyond));
        }
    }
};

template <class Pass>
__global__ void conversion_kernel(const __grid_constant__ Pass pass) {
    pass.run();
}

template <class From, class To>
conversions<To> expected_of(demi::bits_of<From> bits, std::uint64_t index) {
    conversions<To> result;
    for (int mode = 0; mode < 2; ++mode) {
        const auto beyond = static_cast<overflow>(mode);
        auto* const place = result.bits + 3 * mode;
        place[0] = demi::convert_bits<To, From>(bits, demi::nearest_even{}, beyond);
        place[1] = demi::convert_bits<To, From>(bits, demi::toward_zero{}, beyond);
        place[2] = demi::convert_bits<To, From>(bits, noise_of(index), beyond);
    }
    return result;
}

/// Values that the device converts to other bits than the host.
template <class From, class To>
std::size_t differences(const std::vector<demi::bits_of<From>>& inputs) {
    const demi::cuda_stream stream;
    const demi::cuda_backend where(stream);
    auto from = where.make_buffer<demi::bits_of<From>>(inputs.size());
    auto to = where.make_buffer<conversions<To>>(inputs.size());
    where.upload(inputs.data(), from.data(), inputs.size());
    const conversion_pass<From, To> pass{from.data(), to.data(), inputs.size()};
    const auto blocks = static_cast<unsigned>((inputs.size() + 255) / 256);
    demi::detail::launch("convert", conversion_kernel<conversion_pass<From, To>>, {blocks, 256},
                         stream, pass);
    std::vector<conversions<To>> found(inputs.size());
    where.download(to.data(), found.data(), found.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!(found[i] == expected_of<From, To>(inputs[i], i))) ++different;
    }
    return different;
}

template <class From>
std::vector<demi::bits_of<From>> all_values() {
    std::vector<demi::bits_of<From>> values(std::size_t{1} << demi::format_traits<From>::bits);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<demi::bits_of<From>>(i);
    }
    return values;
}

/// Both signs of every value of `To`, of every midpoint between two of them, the one beyond the
/// largest included, and of what lies next to these; then NaN of all kinds, and random bits.
template <class From, class To>
std::vector<demi::bits_of<From>> boundaries() {
    using format = demi::format_traits<To>;
    using source = demi::format_traits<From>;
    using word = demi::bits_of<From>;
    std::vector<word> values;
    const auto add = [&](word magnitude) {
        for (const word sign : {word{0}, source::sign_mask}) {
            values.push_back(static_cast<word>(magnitude | sign));
        }
    };
    const auto add_around = [&](double value) {
        const word middle = demi::to_bits(static_cast<From>(value));
        if (middle != 0) add(middle - 1);
        add(middle);
        add(middle + 1);
    };
    const auto value_of = [](std::size_t code) {
        return demi::convert<double>(demi::from_bits<To>(static_cast<demi::bits_of<To>>(code)));
    };
    for (std::size_t code = 0; code < format::max_finite_bits; ++code) {
        add_around(value_of(code));
        add_around((value_of(code) + value_of(code + 1)) / 2);
    }
    const double half_step =
        demi::detail::power_of_two(format::max_exponent - format::mantissa_bits - 1);
    for (int i = 0; i <= 2; ++i) add_around(format::max_finite + i * half_step);
    add_around(static_cast<double>(demi::format_traits<From>::max_finite));
    for (int bit = 0; bit < source::mantissa_bits; ++bit) {
        add(static_cast<word>(source::exponent_mask | word{1} << bit));
    }
    std::mt19937_64 random(3);
    for (int i = 0; i < 2000; ++i) {
        add(static_cast<word>(source::exponent_mask | (random() & source::mantissa_mask)));
        values.push_back(static_cast<word>(random()));
    }
    return values;
}

}  // namespace

TEMPLATE_TEST_CASE("the device converts every value of a narrow format as the host does", "",
                   float16, bfloat16, float8_e4m3, float8_e5m2) {
    const auto values = all_values<TestType>();
    CHECK(differences<TestType, double>(values) == 0);
    CHECK(differences<TestType, float>(values) == 0);
    CHECK(differences<TestType, float16>(values) == 0);
    CHECK(differences<TestType, bfloat16>(values) == 0);
    CHECK(differences<TestType, float8_e4m3>(values) == 0);
    CHECK(differences<TestType, float8_e5m2>(values) == 0);
}

TEMPLATE_TEST_CASE("the device converts floats at every boundary of a format as the host does", "",
                   float16, bfloat16, float8_e4m3, float8_e5m2) {
    CHECK(differences<float, TestType>(boundaries<float, TestType>()) == 0);
}

TEST_CASE("the device converts doubles at the boundaries of a format as the host does") {
    CHECK(differences<double, float16>(boundaries<double, float16>()) == 0);
    CHECK(differences<double, float8_e4m3>(boundaries<double, float8_e4m3>()) == 0);
    const auto values = boundaries<double, float16>();
    CHECK(differences<double, float>(values) == 0);
    CHECK(differences<float, double>(boundaries<float, float16>()) == 0);
    CHECK(differences<float, float>(boundaries<float, float16>()) == 0);
}
