// SPDX-License-Identifier: MIT
#include <demi/host/lanes.hpp>
#include <demi/kernels/epilogue.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <vector>

namespace {

using namespace demi;

/// Calls an epilogue with a pack of four lanes, without that pack crossing this function's border.
template <class Epilogue>
std::array<float, 4> on_lanes(const Epilogue& function, const std::array<float, 4>& values,
                              matrix_position at) {
    std::array<float, 4> results{};
    function(lanes<4>::load(values.data()), at).store(results.data());
    return results;
}

/// Equal but for fused multiply-adds.
bool nearly(float a, float b) { return std::fabs(a - b) <= 1e-5f; }

struct halve {
    float operator()(float value, matrix_position) const { return value / 2; }
};

}  // namespace

TEST_CASE("bias adds the value of the column, from any tensor or pointer") {
    const std::vector<float> floats{1, 2, 3};
    CHECK(bias(floats)(10.0f, {7, 2}) == 13.0f);
    CHECK(bias(floats.data())(10.0f, {7, 0}) == 11.0f);
    CHECK(bias(std::span(floats))(10.0f, {0, 1}) == 12.0f);
    CHECK(bias(floats)(10.0, {0, 1}) == 12.0);

    std::vector<float16> halves{float16(0.5f), float16(1.5f)};
    CHECK(bias(halves)(1.0f, {0, 1}) == 2.5f);
    CHECK(bias(halves.data())(1.0f, {0, 0}) == 1.5f);
}

TEST_CASE("bias adds the values of consecutive columns to a pack") {
    const std::vector<float> floats{9, 1, 2, 3, 4};
    const std::vector<bfloat16> shorts{bfloat16(9.0f), bfloat16(1.0f), bfloat16(2.0f),
                                       bfloat16(3.0f), bfloat16(4.0f)};
    const std::array<float, 4> expected{11, 22, 33, 44};
    CHECK(on_lanes(bias(floats), {10, 20, 30, 40}, {5, 1}) == expected);
    CHECK(on_lanes(bias(shorts), {10, 20, 30, 40}, {5, 1}) == expected);
}

TEST_CASE("scale multiplies") {
    CHECK(scale{0.25f}(8.0f, {}) == 2.0f);
    CHECK(on_lanes(scale{2}, {1, 2, 3, 4}, {}) == std::array<float, 4>{2, 4, 6, 8});
}

TEST_CASE("store writes what passes, rounded, and passes it on unrounded") {
    std::vector<bfloat16> memory(6, bfloat16(0.0f));
    const matrix_view<bfloat16> target(memory.data(), 2, 3);
    CHECK(store(target)(257.0f, {1, 2}) == 257.0f);
    CHECK(static_cast<float>(memory[5]) == 256.0f);
}

TEST_CASE("store and the gradients reach a pack's elements in either layout") {
    for (const auto order : {layout::row_major, layout::column_major}) {
        std::vector<float> memory(2 * 5, -1.0f);
        const matrix_view<float> matrix(memory.data(), 2, 5, order);
        on_lanes(store(matrix), {1, 2, 3, 4}, {1, 1});
        for (std::size_t i = 0; i < 5; ++i) {
            CHECK(matrix(0, i) == -1.0f);
            CHECK(matrix(1, i) == (i == 0 ? -1.0f : static_cast<float>(i)));
        }
        matrix(1, 2) = -5;
        CHECK(on_lanes(relu_gradient(matrix), {7, 7, 7, 7}, {1, 1}) ==
              std::array<float, 4>{7, 0, 7, 7});
    }
}

TEST_CASE("the gradients multiply by the derivative at the stored value") {
    const std::vector<float16> memory{float16(-1.0f), float16(0.0f), float16(2.0f)};
    const matrix_view<const float16> before(memory.data(), 1, 3);
    CHECK(relu_gradient(before)(3.0f, {0, 0}) == 0.0f);
    CHECK(relu_gradient(before)(3.0f, {0, 2}) == 3.0f);
    CHECK(gelu_gradient(before)(3.0f, {0, 1}) == 1.5f);
    CHECK(nearly(gelu_gradient(before)(3.0f, {0, 2}), 3.0f * gelu::derivative(2.0f)));
}

TEST_CASE("epilogues are composed from left to right") {
    const std::vector<float> one{1.0f};
    CHECK((bias(one) | relu{} | scale{3})(-3.0f, {}) == 0.0f);
    CHECK((relu{} | bias(one) | scale{3})(-3.0f, {}) == 3.0f);
    CHECK(then(relu{}, bias(one), scale{3})(-3.0f, {}) == 3.0f);
    CHECK(then(scale{3})(2.0f, {}) == 6.0f);
    CHECK((scale{3} | halve{})(2.0f, {}) == 3.0f);
    CHECK((scale{3} | [](float v, matrix_position at) { return v + static_cast<float>(at.row); })(
              2.0f, {4, 0}) == 10.0f);
}

TEST_CASE("a composition takes packs only when each of its parts does") {
    using all = decltype(relu{} | scale{2});
    using some = decltype(relu{} | halve{});
    CHECK(detail::epilogue_on<all, lanes<4>>);
    CHECK_FALSE(detail::epilogue_on<some, lanes<4>>);
    CHECK(detail::epilogue_on<some, float>);
    CHECK(on_lanes(relu{} | scale{2}, {-1, 2, -3, 4}, {}) == std::array<float, 4>{0, 4, 0, 8});
}

TEST_CASE("a pack and a float give the same activation") {
    const std::array<float, 4> values{-3, -0.5f, 0.25f, 5};
    const auto packed = on_lanes(gelu{}, values, {});
    for (std::size_t i = 0; i < 4; ++i) CHECK(nearly(packed[i], gelu{}(values[i], {})));
    const auto slope = [](auto value, matrix_position) { return gelu::derivative(value); };
    const auto packed_slope = on_lanes(slope, values, {});
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(nearly(packed_slope[i], gelu::derivative(values[i])));
    }
}

TEST_CASE("an epilogue that does not fit the result says what it is and what was expected") {
    const std::vector<float> three(3);
    CHECK(message_of<invalid_argument>([&] { bias(three).require_shape(2, 4); }) ==
          "bias: 3 values, expected 4, one per column of the result");
    CHECK_NOTHROW(bias(three).require_shape(2, 3));
    CHECK_NOTHROW(bias(three.data()).require_shape(2, 400));

    std::vector<float> memory(6);
    const matrix_view<float> matrix(memory.data(), 2, 3);
    CHECK(message_of<invalid_argument>([&] { store(matrix).require_shape(3, 2); }) ==
          "store: matrix of 2 x 3, expected 3 x 2 as the result");
    CHECK(message_of<invalid_argument>([&] { gelu_gradient(matrix).require_shape(2, 4); }) ==
          "activation_gradient: matrix of 2 x 3, expected 2 x 4 as the result");
    CHECK_THROWS_AS((relu{} | store(matrix) | relu{}).require_shape(3, 2), invalid_argument);
    CHECK_NOTHROW((relu{} | store(matrix) | bias(three)).require_shape(2, 3));
}
