// SPDX-License-Identifier: MIT
/// What one pass over gradients learns, against a plain second computation.
#include <demi/kernels/gradient_statistics.hpp>
#include <demi/precision/convert.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <support/backends.hpp>
#include <support/catch.hpp>
#include <support/random_values.hpp>
#include <unit/host/available_isas.hpp>
#include <vector>

namespace {

/// What `gradient_reducer` says of its sum of squares, relative.
constexpr double promised = 0x1p-18;

demi::non_finite kind_of(double value) {
    return std::isnan(value) ? demi::non_finite::nan
           : std::isinf(value)
               ? (value > 0 ? demi::non_finite::plus_infinity : demi::non_finite::minus_infinity)
               : demi::non_finite::none;
}

template <class T>
demi::gradient_statistics plain_statistics(const std::vector<std::vector<T>>& tensors) {
    demi::gradient_statistics result;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        for (std::size_t i = 0; i < tensors[t].size(); ++i) {
            const double value = demi::convert<double>(tensors[t][i]);
            const auto kind = kind_of(value);
            result.sum_of_squares += value * value;
            result.nan_count += kind == demi::non_finite::nan;
            result.infinity_count += std::isinf(value);
            if (kind == demi::non_finite::none) {
                result.largest_magnitude = std::max(result.largest_magnitude, std::fabs(value));
            } else if (result.first_kind == demi::non_finite::none) {
                result.first_kind = kind;
                result.first_non_finite = {t, i};
            }
        }
    }
    return result;
}

bool agree(const demi::gradient_statistics& a, const demi::gradient_statistics& b) {
    if (a.finite() != b.finite() || a.nan_count != b.nan_count ||
        a.infinity_count != b.infinity_count || a.largest_magnitude != b.largest_magnitude ||
        a.first_kind != b.first_kind) {
        return false;
    }
    if (!a.finite()) return a.first_non_finite == b.first_non_finite;
    return std::fabs(a.sum_of_squares - b.sum_of_squares) <= promised * b.sum_of_squares;
}

template <class T, class Backend>
std::size_t wrong_statistics(Backend& where, std::uint64_t seed, int rounds) {
    std::mt19937_64 random(seed);
    std::size_t wrong = 0;
    for (int round = 0; round < rounds; ++round) {
        std::vector<std::vector<T>> tensors(random() % 4 + 1);
        std::size_t filled = 0;
        for (auto& tensor : tensors) {
            tensor.resize(random() % (random() % 8 == 0 ? 600 : 40));
            for (T& value : tensor) value = random_finite<T>(random);
            filled += !tensor.empty();
        }
        for (std::size_t bad = filled == 0 ? 0 : random() % 3; bad > 0; --bad) {
            auto& tensor = tensors[random() % tensors.size()];
            if (!tensor.empty()) tensor[random() % tensor.size()] = random_non_finite<T>(random);
        }
        wrong += !agree(demi::measure_gradients(where, tensors), plain_statistics(tensors));
    }
    return wrong;
}

}  // namespace

TEMPLATE_TEST_CASE("one pass learns norm, largest value, and what is not finite where", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    CHECK(wrong_statistics<float>(where, 1, 2000) == 0);
    CHECK(wrong_statistics<demi::float16>(where, 2, 2000) == 0);
    CHECK(wrong_statistics<demi::bfloat16>(where, 3, 2000) == 0);
    CHECK(wrong_statistics<demi::float8_e4m3>(where, 4, 1000) == 0);
    CHECK(wrong_statistics<demi::float8_e5m2>(where, 5, 1000) == 0);
}

namespace {

/// Values of one block each: typical ones, zeros, and magnitudes at and beyond the bounds between
/// which squares are summed in float.
template <class T>
std::vector<T> random_regime(std::mt19937_64& random, std::size_t count) {
    static constexpr int exponents[][2] = {{-12, 0},  {-3, 3},     {-24, 15},    {-46, -42},
                                           {57, 60},  {-140, -44}, {-149, -126}, {100, 127},
                                           {-60, 60}, {-80, -45}};
    const auto& range = exponents[random() % 10];
    std::vector<T> values = random_vector<T>(random, count, range[0], range[1]);
    switch (random() % 4) {
        case 0:  // the same value again and again: every rounding goes the same way
            std::fill(values.begin(), values.end(), values[0]);
            break;
        case 1:
            std::fill(values.begin(),
                      values.begin() + static_cast<std::ptrdiff_t>(random() % count), T{});
            break;
        default:
            break;
    }
    for (T& value : values) {
        if (!demi::is_finite(value)) value = T{};
    }
    return values;
}

/// Lists of tensors of some blocks, each of its own regime, with up to two bad values.
template <class T, class Backend>
std::size_t wrong_long_statistics(const Backend& where, std::uint64_t seed, int rounds) {
    std::mt19937_64 random(seed);
    std::size_t wrong = 0;
    for (int round = 0; round < rounds; ++round) {
        std::vector<std::vector<T>> tensors(random() % 2 + 1);
        for (auto& tensor : tensors) {
            for (std::size_t blocks = random() % 4 + 1; blocks > 0; --blocks) {
                const auto block = random_regime<T>(random, random() % 6000 + 1);
                tensor.insert(tensor.end(), block.begin(), block.end());
            }
        }
        for (std::size_t bad = random() % 6 > 2 ? 0 : random() % 3; bad > 0; --bad) {
            auto& tensor = tensors[random() % tensors.size()];
            tensor[random() % tensor.size()] = random_non_finite<T>(random);
        }
        wrong += !agree(demi::measure_gradients(where, tensors), plain_statistics(tensors));
    }
    return wrong;
}

template <class T>
std::size_t wrong_long_statistics_of_host(std::uint64_t seed, int rounds) {
    std::size_t wrong = 0;
    for (const auto isa : demi_test::available_isas()) {
        wrong +=
            wrong_long_statistics<T>(demi::host_backend({.threads = 1, .isa = isa}), seed, rounds);
    }
    return wrong;
}

}  // namespace

TEST_CASE("blocks of any magnitudes keep the promised accuracy, with every instruction set") {
    CHECK(wrong_long_statistics_of_host<float>(11, 60) == 0);
    CHECK(wrong_long_statistics_of_host<demi::float16>(12, 60) == 0);
    CHECK(wrong_long_statistics_of_host<demi::bfloat16>(13, 60) == 0);
    CHECK(wrong_long_statistics_of_host<demi::float8_e5m2>(14, 30) == 0);
}

TEST_CASE("a block beyond the bounds of float is summed in double") {
    for (const auto isa : demi_test::available_isas()) {
        const demi::host_backend where({.threads = 1, .isa = isa});
        for (const float value : {0x1.fp-45f, 0x1.fp58f, 0x1p-149f, 0x1.fffffep127f}) {
            const std::vector<float> values(5000, value);
            const double square = static_cast<double>(value) * static_cast<double>(value);
            const auto found = demi::measure_gradients(where, values);
            CHECK(found.largest_magnitude == static_cast<double>(value));
            CHECK(std::fabs(found.sum_of_squares / (5000 * square) - 1) <= 1e-12);
        }
    }
}

TEST_CASE("a typical norm is a hundred times closer than promised") {
    std::mt19937_64 random(15);
    std::vector<float> values(100000);
    std::normal_distribution<float> normal(0, 1e-3f);
    for (float& value : values) value = normal(random);
    for (const auto isa : demi_test::available_isas()) {
        const demi::host_backend where({.threads = 1, .isa = isa});
        const double sum = plain_statistics<float>({values}).sum_of_squares;
        CHECK(std::fabs(demi::measure_gradients(where, values).sum_of_squares / sum - 1) <=
              promised / 100);
    }
}

TEMPLATE_TEST_CASE("gradients in double keep their range", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const std::vector<double> values{1e100, -2e100, 3};
    const auto found = demi::measure_gradients(where, values);
    CHECK(found.finite());
    CHECK(found.largest_magnitude == 2e100);
    CHECK(std::fabs(found.sum_of_squares - 5e200) <= 1e188);

    const std::vector<double> bad{1, std::numeric_limits<double>::quiet_NaN()};
    CHECK(demi::measure_gradients(where, bad).first_kind == demi::non_finite::nan);
}

TEMPLATE_TEST_CASE("the norm of large finite gradients is finite", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const std::vector<float> large(128, 1e19f);
    const auto found = demi::measure_gradients(where, large);
    CHECK(found.finite());
    CHECK(std::fabs(std::sqrt(found.sum_of_squares) / (std::sqrt(128.0) * 1e19) - 1) < 1e-6);

    const std::vector<float> largest(100000, -std::numeric_limits<float>::max());
    CHECK(demi::measure_gradients(where, largest).finite());
    CHECK(std::isfinite(demi::measure_gradients(where, largest).sum_of_squares));
}

TEMPLATE_TEST_CASE("subnormal gradients are not zero", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const std::vector<float> tiny(40, std::numeric_limits<float>::denorm_min());
    const auto found = demi::measure_gradients(where, tiny);
    CHECK(found.largest_magnitude == 0x1p-149);
    CHECK(found.sum_of_squares == 40 * 0x1p-298);
}

TEMPLATE_TEST_CASE("the first bad value is the first in list order, wherever the work is split", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    std::vector<std::vector<float>> tensors{std::vector<float>(10, 1.0f),
                                            {},
                                            std::vector<float>(300000, 1.0f),
                                            std::vector<float>(7, 1.0f)};
    tensors[3][0] = std::numeric_limits<float>::infinity();
    tensors[2][299999] = std::numeric_limits<float>::quiet_NaN();
    tensors[2][123457] = -std::numeric_limits<float>::infinity();
    const auto found = demi::measure_gradients(where, tensors);
    CHECK(found.first_kind == demi::non_finite::minus_infinity);
    CHECK(found.first_non_finite == demi::element_position{2, 123457});
    CHECK(found.nan_count == 1);
    CHECK(found.infinity_count == 2);
    CHECK(found.largest_magnitude == 1.0);
}

TEMPLATE_TEST_CASE("no gradients are finite and have norm 0", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const std::vector<std::vector<float>> none;
    CHECK(demi::measure_gradients(where, none).finite());
    CHECK(demi::measure_gradients(where, none).sum_of_squares == 0);
}

TEST_CASE("statistics of parts join in any grouping, and nothing is neutral") {
    std::mt19937_64 random(6);
    const auto part = [&](std::uint64_t tensor) {
        demi::gradient_statistics result;
        result.sum_of_squares = static_cast<double>(random() % 1000);
        result.largest_magnitude = static_cast<double>(random() % 100);
        if (random() % 2 == 0) {
            result.first_non_finite = {tensor, random() % 5};
            result.first_kind = static_cast<demi::non_finite>(1 + random() % 3);
            ++(result.first_kind == demi::non_finite::nan ? result.nan_count
                                                          : result.infinity_count);
        }
        return result;
    };
    const auto same = [](const auto& a, const auto& b) {
        return a.sum_of_squares == b.sum_of_squares && a.largest_magnitude == b.largest_magnitude &&
               a.nan_count == b.nan_count && a.infinity_count == b.infinity_count &&
               a.first_kind == b.first_kind && a.first_non_finite == b.first_non_finite;
    };
    std::size_t wrong = 0;
    for (int round = 0; round < 2000; ++round) {
        const auto a = part(0), b = part(1), c = part(2);
        wrong += !same(demi::merge(demi::merge(a, b), c), demi::merge(a, demi::merge(b, c)));
        wrong += !same(demi::merge(a, b), demi::merge(b, a));
        wrong += !same(demi::merge(a, {}), a) || !same(demi::merge({}, a), a);
        wrong += demi::merge(a, b).finite() != (a.finite() && b.finite());
    }
    CHECK(wrong == 0);
}

TEST_CASE("kinds have names for messages") {
    CHECK(std::string(demi::name(demi::non_finite::nan)) == "NaN");
    CHECK(std::string(demi::name(demi::non_finite::plus_infinity)) == "+infinity");
    CHECK(std::string(demi::name(demi::non_finite::minus_infinity)) == "-infinity");
    CHECK(std::string(demi::name(demi::non_finite::none)) == "finite");
}

static_assert(demi::lane_reducer<demi::gradient_reducer, float>);
static_assert(demi::lane_reducer<demi::gradient_reducer, double>);

TEMPLATE_TEST_CASE("each tensor's statistics are those of the tensor alone", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where{};
    std::mt19937_64 random(11);
    std::vector<std::vector<demi::float16>> tensors;
    for (const std::size_t size : {5u, 0u, 3000u, 1u, 40000u}) {
        tensors.emplace_back(size);
        const float largest = std::ldexp(1.0f, static_cast<int>(random() % 12));
        std::uniform_real_distribution<float> uniform(-largest, largest);
        for (auto& value : tensors.back()) value = demi::float16(uniform(random));
    }
    tensors[2][2999] = demi::float16(-INFINITY);
    tensors[2][2000] = demi::float16(NAN);

    const auto found = demi::measure_each_gradient(where, tensors);
    REQUIRE(found.size() == tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        CAPTURE(i);
        auto expected = plain_statistics<demi::float16>({tensors[i]});
        expected.first_non_finite.tensor = i;
        CHECK(agree(found[i], expected));
    }
    CHECK(demi::measure_each_gradient(where, std::vector<std::vector<float>>()).empty());
}
