// SPDX-License-Identifier: MIT
/// How foreign tensors and containers of them become lists of spans.
#include <demi/core/tensor.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <support/catch.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#if DEMI_TEST_HAS_EIGEN
#include <Eigen/Core>
#endif

namespace engine {

// A tensor as a torch-like library has it: no data() and size(), a hook found by its namespace.
struct tensor {
    float* first;
    std::int64_t count;
};
std::span<float> demi_view(tensor& value) {
    return {value.first, static_cast<std::size_t>(value.count)};
}

// A tensor that knows demi, with a padded data() that must not be used.
struct padded {
    std::array<float, 8> memory{};
    float* data() { return memory.data(); }
    int size() const { return 8; }
    std::span<float> demi_view() { return std::span(memory).first(5); }
};

// A tensor whose size is a signed number, as in Qt or Eigen.
struct signed_size {
    double element = 1;
    double* data() { return &element; }
    int size() const { return 1; }
};

// A type that nobody may change.
struct sealed {
    std::uint16_t codes[3] = {1, 2, 3};
};

struct layer {
    std::vector<float> weight;
};

// A container of layers that hands out references.
struct model {
    std::vector<std::reference_wrapper<std::vector<float>>> parameters;
};

}  // namespace engine

template <>
struct demi::tensor_traits<engine::sealed> {
    static std::span<std::uint16_t> view(engine::sealed& value) { return value.codes; }
};

namespace {

template <class List>
std::vector<std::size_t> sizes(const List& list) {
    std::vector<std::size_t> result;
    for (const auto& tensor : list) result.push_back(tensor.size());
    return result;
}

using counts = std::vector<std::size_t>;

}  // namespace

TEST_CASE("a tensor is anything with a hook, a specialised trait, or data and size") {
    CHECK(demi::tensor<std::vector<float>>);
    CHECK(demi::tensor<const std::vector<float>>);
    CHECK(demi::tensor<std::span<const double>>);
    CHECK(demi::tensor<std::array<std::uint16_t, 4>>);
    CHECK(demi::tensor<engine::tensor>);
    CHECK(demi::tensor<engine::padded>);
    CHECK(demi::tensor<engine::signed_size>);
    CHECK(demi::tensor<engine::sealed>);
}

TEST_CASE("things that are not tensors are told apart without a hard error") {
    CHECK_FALSE(demi::tensor<int>);
    CHECK_FALSE(demi::tensor<float*>);
    CHECK_FALSE(demi::tensor<engine::layer>);
    CHECK_FALSE(demi::tensor<std::vector<std::vector<float>>>);
    CHECK_FALSE(demi::tensor<std::vector<float*>>);
    CHECK_FALSE(demi::tensor<std::vector<engine::layer>>);
    CHECK_FALSE(demi::tensor<std::vector<std::complex<float>>>);
    CHECK_FALSE(demi::tensor_source<int>);
    CHECK_FALSE(demi::tensor_source<engine::layer>);
    CHECK_FALSE(demi::tensor_source<std::vector<engine::layer>>);
    CHECK_FALSE(demi::tensor_source<std::vector<int*>>);
}

TEST_CASE("a member hook is preferred to data and size") {
    engine::padded value;
    CHECK(demi::view(value).size() == 5);
    CHECK(demi::view(value).data() == value.memory.data());
}

TEST_CASE("a view refers to the tensor's own memory and keeps its constness") {
    std::vector<float> values{1, 2, 3};
    const auto writable = demi::view(values);
    writable[1] = 20;
    CHECK(values[1] == 20);
    CHECK(std::is_same_v<decltype(writable), const std::span<float>>);

    const std::vector<float>& fixed = values;
    CHECK(std::is_same_v<decltype(demi::view(fixed)), std::span<const float>>);

    engine::sealed foreign;
    CHECK(demi::view(foreign)[2] == 3);
    engine::signed_size one;
    CHECK(demi::view(one).size() == 1);
}

TEST_CASE("a null pointer with a count is refused, an empty tensor is not") {
    engine::tensor broken{nullptr, 7};
    try {
        demi::view(broken);
        CHECK(false);
    } catch (const demi::invalid_argument& failure) {
        CHECK(std::string(failure.what()) == "tensor: null pointer to 7 elements");
    }
    engine::tensor empty{nullptr, 0};
    CHECK(demi::view(empty).empty());
    std::vector<engine::tensor> several{empty, broken};
    CHECK_THROWS_AS(demi::tensor_list(several), demi::invalid_argument);
}

TEST_CASE("a list is deduced from one tensor") {
    std::vector<float> values(3);
    const demi::tensor_list list(values);
    CHECK(std::is_same_v<decltype(list), const demi::tensor_list<float>>);
    CHECK(list.size() == 1);
    CHECK(list.element_count() == 3);
    CHECK(list[0].data() == values.data());

    const std::vector<float> fixed(2);
    const demi::tensor_list readable(fixed);
    CHECK(std::is_same_v<decltype(readable), const demi::tensor_list<const float>>);
}

TEST_CASE("a list is made from every container of tensors") {
    std::vector<std::vector<float>> nested{{1}, {}, {2, 3}};
    const demi::tensor_list from_nested(nested);
    CHECK(sizes(from_nested) == counts{1, 0, 2});
    CHECK(from_nested.element_count() == 3);
    CHECK(from_nested[2].data() == nested[2].data());

    std::vector<std::vector<float>*> pointers{&nested[2], &nested[0]};
    CHECK(sizes(demi::tensor_list(pointers)) == counts{2, 1});

    std::deque<std::vector<float>> queue(nested.begin(), nested.end());
    CHECK(sizes(demi::tensor_list(queue)) == counts{1, 0, 2});

    std::list<std::shared_ptr<std::vector<float>>> shared{std::make_shared<std::vector<float>>(4u),
                                                          std::make_shared<std::vector<float>>(5u)};
    CHECK(sizes(demi::tensor_list(shared)) == counts{4, 5});

    std::vector<std::unique_ptr<engine::padded>> owned;
    owned.push_back(std::make_unique<engine::padded>());
    CHECK(sizes(demi::tensor_list(owned)) == counts{5});

    engine::model model{{nested[2], nested[0]}};
    CHECK(sizes(demi::tensor_list(model.parameters)) == counts{2, 1});

    std::vector<float> memory(6);
    std::vector<engine::tensor> foreign{{memory.data(), 2}, {memory.data() + 2, 4}};
    CHECK(sizes(demi::tensor_list(foreign)) == counts{2, 4});

    std::vector<std::span<const float>> spans{memory, std::span(memory).first(1)};
    const demi::tensor_list from_spans(spans);
    CHECK(std::is_same_v<decltype(from_spans), const demi::tensor_list<const float>>);
    CHECK(sizes(from_spans) == counts{6, 1});
}

TEST_CASE("an array of tensors and a braced pair of spans are ranges of tensors") {
    std::vector<float> weight(3);
    std::vector<float> bias(1);
    std::vector<float>* parameters[] = {&weight, &bias};
    CHECK(sizes(demi::tensor_list(parameters)) == counts{3, 1});
    std::array<std::span<float>, 2> both{weight, bias};
    CHECK(sizes(demi::tensor_list(both)) == counts{3, 1});
}

TEST_CASE("tensors given one by one keep their order") {
    std::vector<float> weight(3);
    std::array<float, 2> bias{};
    engine::padded padded;
    const auto list = demi::tensors(weight, bias, padded);
    CHECK(sizes(list) == counts{3, 2, 5});
    CHECK(list.element_count() == 10);
    CHECK(list[1].data() == bias.data());
    CHECK(list.spans().size() == 3);
}

TEST_CASE("a list of constant elements takes mutable tensors") {
    std::vector<float> values(4);
    const demi::tensor_list<const float> list(values);
    CHECK(list[0].data() == values.data());
}

TEST_CASE("a list is a value: a copy refers to the same memory and grows on its own") {
    std::vector<float> first(2);
    std::vector<float> second(3);
    demi::tensor_list<float> list;
    CHECK(list.empty());
    list.add(first);
    demi::tensor_list<float> copy = list;
    copy.add(second);
    CHECK(list.size() == 1);
    CHECK(copy.size() == 2);
    CHECK(copy.element_count() == 5);
    CHECK(copy[0].data() == list[0].data());
}

TEST_CASE("a difference in shape is reported by its place and both sizes") {
    std::vector<std::vector<float>> gradients{std::vector<float>(4), std::vector<float>(6)};
    std::vector<std::vector<double>> weights{std::vector<double>(4), std::vector<double>(5)};
    const auto refusal = [](const auto& a, const auto& b) -> std::string {
        try {
            demi::detail::require_same_shape("step", "gradient", a.spans(), "the parameters",
                                             b.spans());
            return "accepted";
        } catch (const demi::invalid_argument& failure) {
            return failure.what();
        }
    };
    const demi::tensor_list gradient_list(gradients);
    CHECK(refusal(gradient_list, demi::tensor_list(weights)) ==
          "step: gradient tensor 1 has 6 elements, expected 5 as in the parameters");
    CHECK(refusal(gradient_list, demi::tensor_list(weights[0])) ==
          "step: 2 gradient tensors, expected 1 as in the parameters");
    CHECK(refusal(gradient_list, gradient_list) == "accepted");
}

#if DEMI_TEST_HAS_EIGEN
TEST_CASE("a list takes what its elements can be seen as, and says so beforehand") {
    using std::is_constructible_v;
    CHECK(is_constructible_v<demi::tensor_list<float>, std::vector<float>&>);
    CHECK(is_constructible_v<demi::tensor_list<const float>, std::vector<float>&>);
    CHECK(is_constructible_v<demi::tensor_list<const float>, demi::tensor_list<float>&>);
    CHECK(!is_constructible_v<demi::tensor_list<float>, const std::vector<float>&>);
    CHECK(!is_constructible_v<demi::tensor_list<float>, demi::tensor_list<const float>&>);
    CHECK(!is_constructible_v<demi::tensor_list<double>, std::vector<float>&>);
}

TEST_CASE("Eigen matrices, vectors and contiguous maps are tensors") {
    Eigen::MatrixXf weight(3, 4);
    Eigen::VectorXf bias(3);
    const auto list = demi::tensors(weight, bias);
    CHECK(sizes(list) == counts{12, 3});
    CHECK(list[0].data() == weight.data());

    std::vector<Eigen::MatrixXd> several{Eigen::MatrixXd(2, 2), Eigen::MatrixXd(1, 5)};
    CHECK(sizes(demi::tensor_list(several)) == counts{4, 5});

    const Eigen::VectorXf& fixed = bias;
    CHECK(std::is_same_v<decltype(demi::tensor_list(fixed)), demi::tensor_list<const float>>);
}
#endif
