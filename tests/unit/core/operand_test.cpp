// SPDX-License-Identifier: MIT
/// Operands: a tensor list with its access and its rounding.
#include <demi/core/operand.hpp>

#include <compare>
#include <support/catch.hpp>
#include <type_traits>
#include <vector>

namespace {

template <class List, class... Rounding>
concept writable = requires(const List& list, Rounding... rounding) {
    demi::out(list, rounding...);
    demi::inout(list, rounding...);
};

}  // namespace

TEST_CASE("an operand refers to the spans of its list") {
    std::vector<float> values(3);
    const demi::tensor_list list(values);
    CHECK(demi::in(list).tensors.data() == list.spans().data());
    CHECK(demi::out(list).tensors.data() == list.spans().data());
    CHECK(demi::inout(list).tensors.data() == list.spans().data());
    CHECK(demi::in(list).tensors.size() == 1);
}

TEST_CASE("the three operands differ in their access") {
    std::vector<float> values(3);
    const demi::tensor_list list(values);
    CHECK(decltype(demi::in(list))::mode == demi::access::read);
    CHECK(decltype(demi::out(list))::mode == demi::access::write);
    CHECK(decltype(demi::inout(list))::mode == demi::access::update);
}

TEST_CASE("a list of constant elements can only be read") {
    CHECK(writable<demi::tensor_list<float>>);
    CHECK_FALSE(writable<demi::tensor_list<const float>>);
    const std::vector<float> values(3);
    const demi::tensor_list list(values);
    CHECK(std::is_same_v<decltype(demi::in(list))::element_type, const float>);
}

TEST_CASE("a written operand carries its rounding, nearest even unless asked otherwise") {
    std::vector<float> values(3);
    const demi::tensor_list list(values);
    CHECK(std::is_same_v<decltype(demi::out(list).rounding), demi::nearest_even>);
    const auto drawn = demi::inout(list, demi::stochastic{.seed = 5, .step = 9});
    CHECK(drawn.rounding.seed == 5);
    CHECK(drawn.rounding.step == 9);
    CHECK(
        std::is_same_v<decltype(demi::out(list, demi::toward_zero{}).rounding), demi::toward_zero>);
    CHECK_FALSE(writable<demi::tensor_list<float>, demi::stochastic_bits>);
}

TEST_CASE("positions are ordered by tensor first, then by index") {
    using demi::element_position;
    CHECK(element_position{} == element_position{0, 0});
    CHECK(element_position{0, 9} < element_position{1, 0});
    CHECK(element_position{1, 2} < element_position{1, 3});
    CHECK(element_position{1, 99} < element_position{2, 0});
    CHECK(element_position{1, 2} != element_position{2, 1});
}
