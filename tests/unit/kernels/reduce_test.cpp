// SPDX-License-Identifier: MIT
/// Reductions: sums in double, reducers of the user's own, and the second look at a block.
#include <demi/kernels/reduce.hpp>
#include <demi/precision/convert.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <support/backends.hpp>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <vector>

namespace {

using floats = std::vector<float>;

struct identity {
    template <class Real>
    Real operator()(const Real& value) const {
        return value;
    }
};

struct magnitude {
    template <class Real>
    Real operator()(const Real& value) const {
        using demi::abs;
        return abs(value);
    }
};

/// Two operands, as a user would write the inner product.
struct inner_product {
    using value_type = double;
    template <class Real>
    struct partial {
        typename demi::real_traits<Real>::wide sum{};
    };
    template <class Real>
    void accumulate(partial<Real>& into, const Real& left, const Real& right) const {
        using demi::widen;
        into.sum = into.sum + widen(left) * widen(right);
    }
    template <class Real>
    double finish(const partial<Real>& from) const {
        using demi::sum_lanes;
        return sum_lanes(from.sum);
    }
    double combine(double left, double right) const { return left + right; }
};

/// Finds where the elements above 100 are, by the second look.
struct find_large {
    struct value_type {
        double largest = 0;
        std::uint64_t count = 0;
        demi::element_position first{};
    };
    template <class Real>
    struct partial {
        typename demi::real_traits<Real>::bits largest{};
    };
    template <class Real>
    void accumulate(partial<Real>& into, const Real& value) const {
        using demi::magnitude_bits;
        using demi::max;
        into.largest = max(into.largest, magnitude_bits(value));
    }
    template <class Real>
    value_type finish(const partial<Real>& from) const {
        using demi::max_lanes;
        return {static_cast<double>(demi::from_bits<float>(max_lanes(from.largest))), 0, {}};
    }
    value_type combine(const value_type& left, const value_type& right) const {
        const bool from_left = right.count == 0 || (left.count != 0 && left.first < right.first);
        return {left.largest > right.largest ? left.largest : right.largest,
                left.count + right.count, from_left ? left.first : right.first};
    }
    bool wants_inspection(const value_type& block) const { return block.largest > 100; }
    void inspect(value_type& block, demi::element_position at, float value) const {
        if (!(demi::abs(value) > 100)) return;
        if (block.count++ == 0) block.first = at;
    }
};

std::vector<floats> integers(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<floats> tensors;
    for (const unsigned count : {1u, 0u, 7u, 16u, 65u, 4099u, 70001u}) {
        floats values(count);
        for (float& value : values) value = static_cast<float>(random() % 4001) - 2000.0f;
        tensors.push_back(values);
    }
    return tensors;
}

}  // namespace

TEMPLATE_TEST_CASE("a sum adds up every element once, in double", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const auto tensors = integers(1);
    const demi::tensor_list<const float> list(tensors);
    double sum = 0, magnitudes = 0;
    for (const auto& tensor : tensors) {
        for (const float value : tensor) {
            sum += static_cast<double>(value);
            magnitudes += static_cast<double>(demi::abs(value));
        }
    }
    CHECK(demi::reduce(where, demi::sum_of{identity{}}, demi::in(list)) == sum);
    CHECK(demi::reduce(where, demi::sum_of{magnitude{}}, demi::in(list)) == magnitudes);

    // In float the ones would vanish beside 2^30.
    floats values(1001, 1.0f);
    values[0] = 0x1p30f;
    const demi::tensor_list<const float> wide(values);
    CHECK(demi::reduce(where, demi::sum_of{identity{}}, demi::in(wide)) == 0x1p30 + 1000);
}

TEMPLATE_TEST_CASE("a lambda is the map of a sum", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const floats values(123, 3.0f);
    const demi::tensor_list<const float> list(values);
    const auto squares = demi::sum_of{[](const auto& value) { return value * value; }};
    CHECK(demi::reduce(where, squares, demi::in(list)) == 1107.0);
}

TEMPLATE_TEST_CASE("narrow and wide formats reduce alike", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const std::vector<demi::float16> halves(100, demi::float16(0.5f));
    CHECK(demi::reduce(where, demi::sum_of{identity{}},
                       demi::in(demi::tensor_list<const demi::float16>(halves))) == 50.0);
    const std::vector<double> doubles(100, 1.0 + 0x1p-40);
    CHECK(demi::reduce(where, demi::sum_of{identity{}},
                       demi::in(demi::tensor_list<const double>(doubles))) == 100 + 100 * 0x1p-40);
}

TEMPLATE_TEST_CASE("nothing reduces to the identity", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const demi::tensor_list<const float> none;
    CHECK(demi::reduce(where, demi::sum_of{identity{}}, demi::in(none)) == 0.0);
    const floats empty;
    CHECK(demi::reduce(where, demi::sum_of{identity{}},
                       demi::in(demi::tensor_list<const float>(empty))) == 0.0);
}

TEMPLATE_TEST_CASE("a reducer may take several operands", "", DEMI_TEST_BACKENDS) {
    TestType where;
    const auto left = integers(2), right = integers(3);
    double expected = 0;
    for (std::size_t t = 0; t < left.size(); ++t) {
        for (std::size_t i = 0; i < left[t].size(); ++i) {
            expected += static_cast<double>(left[t][i]) * static_cast<double>(right[t][i]);
        }
    }
    const demi::tensor_list<const float> a(left), b(right);
    CHECK(demi::reduce(where, inner_product{}, demi::in(a), demi::in(b)) == expected);
}

TEMPLATE_TEST_CASE("a block that the reducer asks for is inspected element by element", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    std::mt19937_64 random(4);
    std::size_t wrong = 0;
    for (int round = 0; round < 300; ++round) {
        std::vector<floats> tensors{floats(5, 1.0f), floats(), floats(3001, 2.0f),
                                    floats(70, 3.0f)};
        const std::size_t wanted = random() % 4;
        demi::element_position first{~0ull, 0};
        for (std::size_t n = 0; n < wanted; ++n) {
            const std::size_t tensor = std::vector<std::size_t>{0, 2, 3}[random() % 3];
            const std::size_t index = random() % tensors[tensor].size();
            tensors[tensor][index] = -101.0f;
            first = std::min(first, demi::element_position{tensor, index});
        }
        std::uint64_t count = 0;
        for (const auto& tensor : tensors) {
            for (const float value : tensor) count += value < -100.0f;
        }
        const auto found =
            demi::reduce(where, find_large{}, demi::in(demi::tensor_list<const float>(tensors)));
        wrong += found.count != count || (count != 0 && !(found.first == first));
    }
    CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("each tensor reduces to what it does alone, told by its place in the list", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    auto left = integers(6), right = integers(7);
    left.insert(left.begin(), floats());
    right.insert(right.begin(), floats());
    left[7][69999] = 5000;
    const demi::tensor_list<const float> a(left), b(right);
    auto products = where.template make_buffer<double>(left.size());
    demi::reduce_each(where, products.data(), inner_product{}, demi::in(a), demi::in(b));
    auto large = where.template make_buffer<find_large::value_type>(left.size());
    demi::reduce_each(where, large.data(), find_large{}, demi::in(a));
    for (std::size_t i = 0; i < left.size(); ++i) {
        CAPTURE(i);
        const demi::tensor_list<const float> alone(left[i]), other(right[i]);
        CHECK(where.read(products.data() + i).get() ==
              demi::reduce(where, inner_product{}, demi::in(alone), demi::in(other)));
        const auto found = where.read(large.data() + i).get();
        const auto expected = demi::reduce(where, find_large{}, demi::in(alone));
        CHECK(found.count == expected.count);
        CHECK(found.largest == expected.largest);
        CHECK(found.first ==
              demi::element_position{expected.count == 0 ? 0 : i, expected.first.index});
    }
    CHECK(where.read(large.data() + 7).get().largest == 5000.0);
}

TEMPLATE_TEST_CASE("a reduction gives the same bits every time", "", DEMI_TEST_BACKENDS) {
    TestType where;
    std::mt19937_64 random(5);
    floats values(300001);
    for (float& value : values) value = 1.0f / static_cast<float>(1 + random() % 1000);
    const demi::tensor_list<const float> list(values);
    const double first = demi::reduce(where, demi::sum_of{identity{}}, demi::in(list));
    std::size_t different = 0;
    for (int round = 0; round < 20; ++round) {
        different +=
            !same_bits(demi::reduce(where, demi::sum_of{identity{}}, demi::in(list)), first);
    }
    CHECK(different == 0);
}

TEST_CASE("a reduction refuses operands of different shapes") {
    reference_backend where;
    const floats left(3), right(4);
    const auto text = message_of<demi::invalid_argument>([&] {
        demi::reduce(where, inner_product{}, demi::in(demi::tensor_list<const float>(left)),
                     demi::in(demi::tensor_list<const float>(right)));
    });
    CHECK(mentions(text, {"reduce", "4 elements", "expected 3"}));
    double values[1];
    CHECK_THROWS_AS(demi::reduce_each(where, values, inner_product{},
                                      demi::in(demi::tensor_list<const float>(left)),
                                      demi::in(demi::tensor_list<const float>(right))),
                    demi::invalid_argument);
}

TEST_CASE("A sum can be over a map of several operands, such as a dot product") {
    const std::vector<float> left{1, 2, 3, 4, 5};
    const std::vector<float> right{5, 4, 3, 2, 1};
    const demi::tensor_list a(left);
    const demi::tensor_list b(right);
    const auto product = [](auto x, auto y) { return x * y; };
    CHECK(demi::reduce(demi::host_backend{}, demi::sum_of{product}, demi::in(a), demi::in(b)) ==
          35.0);
}
