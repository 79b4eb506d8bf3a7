// SPDX-License-Identifier: MIT
#include <demi/kernels/float8_cast.hpp>

#include <cstddef>
#include <limits>
#include <random>
#include <support/backends.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <support/random_values.hpp>
#include <vector>

namespace {

using demi::float8_e4m3;
using demi::float8_e5m2;
using demi::layout;
using demi::matrix_view;

/// The three numbers of one tensor.
struct scaling_numbers {
    float scale = 1;
    float amax = 0;
    float scale_inverse = 0;

    demi::float8_scaling pointers() { return {&scale, &amax, &scale_inverse}; }
};

constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEMPLATE_TEST_CASE("a scaled conversion multiplies, saturates and finds the largest magnitude", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where;
    const std::vector<float> values{1, -3, 1000, -1000, 0.125f, -0.0f};
    std::vector<float8_e4m3> found(6);
    scaling_numbers numbers{2};
    demi::cast_scaled(where, matrix_view<const float>(values.data(), 2, 3),
                      matrix_view<float8_e4m3>(found.data(), 2, 3), numbers.pointers());
    const float expected[] = {2, -6, 448, -448, 0.25f, -0.0f};
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(found[i].bits() == demi::convert<float8_e4m3>(expected[i]).bits());
    }
    CHECK(numbers.amax == 1000);
    CHECK(numbers.scale_inverse == 0.5f);
}

TEMPLATE_TEST_CASE("NaN stays NaN, infinity saturates, and neither counts for amax", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where;
    const std::vector<float> values{std::numeric_limits<float>::quiet_NaN(), infinity, -infinity,
                                    -5};
    std::vector<float8_e5m2> found(4);
    scaling_numbers numbers;
    demi::float8_scaling pointers = numbers.pointers();
    pointers.scale_inverse = nullptr;
    demi::cast_scaled(where, matrix_view<const float>(values.data(), 4, 1),
                      matrix_view<float8_e5m2>(found.data(), 4, 1), pointers);
    CHECK(demi::is_nan(found[0]));
    CHECK(static_cast<float>(found[1]) == 57344);
    CHECK(static_cast<float>(found[2]) == -57344);
    CHECK(static_cast<float>(found[3]) == -5);
    CHECK(numbers.amax == 5);
    CHECK(numbers.scale_inverse == 0);
}

TEMPLATE_TEST_CASE("amax is raised and never lowered, and an empty matrix changes nothing", "",
                   DEMI_TEST_BACKENDS) {
    const TestType where;
    const std::vector<float> values{3, 7};
    std::vector<float8_e4m3> found(2);
    scaling_numbers numbers{1, 5, 9};
    const auto cast_first = [&](std::size_t count) {
        demi::cast_scaled(where, matrix_view<const float>(values.data(), count, 1),
                          matrix_view<float8_e4m3>(found.data(), count, 1), numbers.pointers());
    };
    cast_first(0);
    CHECK(numbers.scale_inverse == 9);
    cast_first(1);
    CHECK(numbers.amax == 5);
    cast_first(2);
    CHECK(numbers.amax == 7);
}

TEMPLATE_TEST_CASE("a conversion with its transpose gives both", "", DEMI_TEST_BACKENDS) {
    const TestType where;
    constexpr std::size_t rows = 5, columns = 7;
    std::mt19937_64 random(1);
    std::vector<demi::float16> values = random_vector<demi::float16>(random, 35, -3, 5);
    for (const auto order : {layout::row_major, layout::column_major}) {
        std::vector<float8_e4m3> kept(35), turned(35);
        scaling_numbers numbers{4};
        const matrix_view<demi::float16> from(values.data(), rows, columns);
        const matrix_view<float8_e4m3> to(kept.data(), rows, columns);
        const matrix_view<float8_e4m3> transpose(turned.data(), columns, rows, order);
        demi::cast_transpose(where, from, to, transpose, numbers.pointers());
        float largest = 0;
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t c = 0; c < columns; ++c) {
                const float value = demi::convert<float>(from(r, c));
                largest = demi::max(largest, demi::abs(value));
                CHECK(to(r, c).bits() == demi::convert<float8_e4m3>(value * 4).bits());
                CHECK(transpose(c, r).bits() == to(r, c).bits());
            }
        }
        CHECK(numbers.amax == largest);
    }
}

TEST_CASE("a scaled conversion refuses what it cannot do before it writes") {
    const reference_backend where;
    std::vector<float> values(12, 1);
    std::vector<float8_e4m3> found(24);
    scaling_numbers numbers;
    const matrix_view<const float> from(values.data(), 3, 4);
    const matrix_view<float8_e4m3> to(found.data(), 3, 4);
    const auto message = [&](const matrix_view<float8_e4m3>& target,
                             const demi::float8_scaling& scaling) {
        return message_of<demi::invalid_argument>(
            [&] { demi::cast_scaled(where, from, target, scaling); });
    };
    CHECK(mentions(message({found.data(), 4, 3}, numbers.pointers()),
                   {"cast_scaled", "4 x 3", "expected 3 x 4"}));
    CHECK(mentions(message(to, {nullptr, &numbers.amax}), {"scaling.scale", "null"}));
    CHECK(mentions(message(to, {&numbers.scale, nullptr}), {"scaling.amax", "null"}));
    auto* const same = reinterpret_cast<float8_e4m3*>(values.data());
    CHECK(mentions(message({same, 3, 4}, numbers.pointers()), {"shares memory", "3 x 4"}));

    const auto both = [&](const matrix_view<float8_e4m3>& transpose) {
        return message_of<demi::invalid_argument>(
            [&] { demi::cast_transpose(where, from, to, transpose, numbers.pointers()); });
    };
    CHECK(mentions(both({found.data() + 12, 3, 4}), {"cast_transpose", "4 x 3", "expected 3 x 4"}));
    CHECK(mentions(both({found.data() + 6, 4, 3}), {"cast_transpose", "shares memory"}));
    CHECK(both({found.data() + 12, 4, 3}).empty());
    CHECK(numbers.amax == 1);
}
