// SPDX-License-Identifier: MIT
/// One pass over memory with any functor, and what it refuses.
#include <demi/kernels/transform.hpp>
#include <demi/precision/convert.hpp>
#include <demi/precision/random_bits.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <support/backends.hpp>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <vector>

namespace {

using floats = std::vector<float>;
using halves = std::vector<demi::float16>;

template <class... T>
auto list_of(std::vector<T>&... vectors) {
    return demi::tensors(vectors...);
}

struct add {
    template <class Real>
    void operator()(Real left, Real right, Real& sum) const {
        sum = left + right;
    }
};

struct twice {
    template <class Real>
    void operator()(Real& value) const {
        value = value + value;
    }
};

struct fill {
    float value;
    template <class Real>
    void operator()(Real& to) const {
        to = static_cast<Real>(value);
    }
};

struct copy {
    template <class Real>
    void operator()(Real from, Real& to) const {
        to = from;
    }
};

/// A functor of float alone, as a user writes it first.
struct negate_float {
    void operator()(float from, float& to) const { to = -from; }
};

/// Reads its value, and whether to work at all, from memory when the pass begins.
struct fill_from_memory {
    const float* value;
    const bool* enabled;

    struct loaded : fill {
        bool off;
        bool skip() const { return off; }
    };
    loaded load() const { return {{*value}, !*enabled}; }
};

/// Lists of tensors with awkward sizes, no two of them in one piece of memory.
struct shapes {
    std::vector<floats> tensors;

    explicit shapes(std::uint64_t seed) {
        std::mt19937_64 random(seed);
        for (const unsigned count : {0u, 1u, 3u, 7u, 8u, 15u, 16u, 17u, 31u, 33u, 64u, 0u, 1025u}) {
            floats values(count);
            for (float& value : values) value = static_cast<float>(random() % 2001) - 1000.0f;
            tensors.push_back(values);
        }
    }
};

}  // namespace

TEMPLATE_TEST_CASE("a pass calls the functor for every element of every tensor", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    shapes left(1), right(2), sum(3);
    const demi::tensor_list<const float> a(left.tensors), b(right.tensors);
    const demi::tensor_list<float> c(sum.tensors);
    demi::transform(where, add{}, demi::in(a), demi::in(b), demi::out(c));
    std::size_t wrong = 0;
    for (std::size_t t = 0; t < c.size(); ++t) {
        for (std::size_t i = 0; i < c[t].size(); ++i) wrong += c[t][i] != a[t][i] + b[t][i];
    }
    CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("an operand that is updated is read and written in place", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    shapes values(4);
    const auto before = values.tensors;
    demi::transform(where, twice{}, demi::inout(demi::tensor_list<float>(values.tensors)));
    std::size_t wrong = 0;
    for (std::size_t t = 0; t < before.size(); ++t) {
        for (std::size_t i = 0; i < before[t].size(); ++i) {
            wrong += values.tensors[t][i] != 2 * before[t][i];
        }
    }
    CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("formats may differ, and each value is rounded once on its way out", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    halves a(37, demi::float16(1.0f));
    floats b(37, 0x1p-12f);
    std::vector<demi::bfloat16> coarse(37);
    const auto sum = list_of(coarse);
    demi::transform(where, add{}, demi::in(list_of(a)), demi::in(list_of(b)), demi::out(sum));
    CHECK(coarse == std::vector<demi::bfloat16>(37, demi::bfloat16(1.0f)));

    std::vector<double> wide(37);
    demi::transform(where, add{}, demi::in(list_of(a)), demi::in(list_of(b)),
                    demi::out(list_of(wide)));
    CHECK(wide == std::vector<double>(37, 1.0 + 0x1p-12));
}

TEMPLATE_TEST_CASE("a pass with a double operand works in double", "", DEMI_TEST_BACKENDS) {
    TestType where;
    std::vector<double> a(21, 1.0), b(21, 0x1p-40), sum(21);
    demi::transform(where, add{}, demi::in(list_of(a)), demi::in(list_of(b)),
                    demi::out(list_of(sum)));
    CHECK(sum == std::vector<double>(21, 1.0 + 0x1p-40));
}

TEMPLATE_TEST_CASE("a functor of float alone works on every format", "", DEMI_TEST_BACKENDS) {
    TestType where;
    halves from(19, demi::float16(3.0f));
    floats to(19);
    demi::transform(where, negate_float{}, demi::in(list_of(from)), demi::out(list_of(to)));
    CHECK(to == floats(19, -3.0f));
}

TEMPLATE_TEST_CASE("lambdas are functors too", "", DEMI_TEST_BACKENDS) {
    TestType where;
    floats values(50, 1.5f);
    demi::transform(
        where, [](auto& value) { value = value * value; }, demi::inout(list_of(values)));
    CHECK(values == floats(50, 2.25f));
}

TEMPLATE_TEST_CASE("a functor is loaded when the pass begins and may call it off", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    auto value = where.template make_buffer<float>(1);
    auto enabled = where.template make_buffer<bool>(1);
    floats target(40, 9.0f);
    const fill_from_memory functor{value.data(), enabled.data()};

    where.invoke([memory = value.data()] { *memory = 5.0f; });
    demi::transform(where, functor, demi::out(list_of(target)));
    CHECK(target == floats(40, 9.0f));

    where.invoke([memory = enabled.data()] { *memory = true; });
    demi::transform(where, functor, demi::out(list_of(target)));
    CHECK(target == floats(40, 5.0f));
}

TEMPLATE_TEST_CASE("stochastic rounding is a function of seed, step, tensor and index alone", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    std::mt19937_64 random(5);
    const std::vector<std::size_t> counts{3, 700, 0, 65};
    std::vector<floats> from;
    std::vector<std::vector<demi::bfloat16>> to;
    for (const auto count : counts) {
        floats values(count);
        for (float& value : values) value = static_cast<float>(random() % 100000) / 777.0f;
        from.push_back(values);
        to.emplace_back(count);
    }
    const demi::stochastic rounding{42, 7};
    demi::transform(where, copy{}, demi::in(demi::tensor_list<const float>(from)),
                    demi::out(demi::tensor_list<demi::bfloat16>(to), rounding));
    std::size_t wrong = 0;
    for (std::size_t t = 0; t < counts.size(); ++t) {
        for (std::size_t i = 0; i < counts[t]; ++i) {
            const auto bits = demi::random_bits(demi::random_key(42, 7, t), i);
            const auto expected =
                demi::convert<demi::bfloat16>(from[t][i], demi::stochastic_bits{bits});
            wrong += !same_bits(to[t][i], expected);
        }
    }
    CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("truncation is the rounding where it is asked for", "", DEMI_TEST_BACKENDS) {
    TestType where;
    floats from(33, 1.0f + 0x1.8p-10f);
    halves to(33);
    demi::transform(where, copy{}, demi::in(list_of(from)),
                    demi::out(list_of(to), demi::toward_zero{}));
    CHECK(to == halves(33, demi::float16(1.0f + 0x1p-10f)));
    demi::transform(where, copy{}, demi::in(list_of(from)), demi::out(list_of(to)));
    CHECK(to == halves(33, demi::float16(1.0f + 0x1p-9f)));
}

TEMPLATE_TEST_CASE("two operands may be the same memory", "", DEMI_TEST_BACKENDS) {
    TestType where;
    shapes values(6);
    const auto before = values.tensors;
    const demi::tensor_list<float> list(values.tensors);
    demi::transform(where, add{}, demi::in(list), demi::in(list), demi::out(list));
    std::size_t wrong = 0;
    for (std::size_t t = 0; t < before.size(); ++t) {
        for (std::size_t i = 0; i < before[t].size(); ++i) {
            wrong += list[t][i] != 2 * before[t][i];
        }
    }
    CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("no tensors, and tensors without elements, are no work", "",
                   DEMI_TEST_BACKENDS) {
    TestType where;
    const demi::tensor_list<float> none;
    demi::transform(where, twice{}, demi::inout(none));
    floats empty;
    demi::transform(where, twice{}, demi::inout(list_of(empty)));
    CHECK(empty.empty());
}

TEST_CASE("operands of different shapes are refused before anything is written") {
    reference_backend where;
    floats a(4, 1.0f), b(5, 2.0f), c(4, 3.0f);
    const auto sizes = message_of<demi::invalid_argument>(
        [&] { demi::transform(where, copy{}, demi::in(list_of(a)), demi::out(list_of(b))); });
    CHECK(mentions(sizes, {"transform", "tensor 0", "5 elements", "expected 4"}));

    const auto counts = message_of<demi::invalid_argument>(
        [&] { demi::transform(where, copy{}, demi::in(list_of(a, c)), demi::out(list_of(b))); });
    CHECK(mentions(counts, {"transform", "1 operand tensors", "expected 2"}));
    CHECK(b == floats(5, 2.0f));
}

TEST_CASE("operands that share a part of their memory are refused before anything is written") {
    reference_backend where;
    floats memory{1, 2, 3, 4, 5, 6, 7, 8};
    const floats before = memory;
    std::span<float> low(memory.data(), 5), shifted(memory.data() + 1, 5);
    const auto text = message_of<demi::invalid_argument>([&] {
        demi::transform(where, copy{}, demi::in(demi::tensors(low)),
                        demi::out(demi::tensors(shifted)));
    });
    CHECK(mentions(text, {"transform", "tensor 0", "overlaps"}));
    CHECK(memory == before);

    SECTION("one byte is enough") {
        std::span<float> first(memory.data(), 4);
        std::span<std::byte> bytes(reinterpret_cast<std::byte*>(memory.data()) + 14, 8);
        std::span<const demi::float16> across(reinterpret_cast<const demi::float16*>(bytes.data()),
                                              4);
        CHECK_THROWS_AS(demi::transform(where, copy{}, demi::in(demi::tensors(across)),
                                        demi::out(demi::tensors(first))),
                        demi::invalid_argument);
    }
    SECTION("the same start with another element size is not the same memory") {
        std::span<float> first(memory.data(), 4);
        std::span<const demi::float16> narrow(reinterpret_cast<const demi::float16*>(memory.data()),
                                              4);
        CHECK_THROWS_AS(demi::transform(where, copy{}, demi::in(demi::tensors(narrow)),
                                        demi::out(demi::tensors(first))),
                        demi::invalid_argument);
    }
    SECTION("neighbours are disjoint") {
        std::span<float> first(memory.data(), 4), second(memory.data() + 4, 4);
        demi::transform(where, copy{}, demi::in(demi::tensors(first)),
                        demi::out(demi::tensors(second)));
        CHECK(memory == floats{1, 2, 3, 4, 1, 2, 3, 4});
    }
    SECTION("a pass that only reads both does not mind") {
        floats sum(5);
        demi::transform(where, add{}, demi::in(demi::tensors(low)),
                        demi::in(demi::tensors(shifted)), demi::out(list_of(sum)));
        CHECK(sum == floats{3, 5, 7, 9, 11});
    }
}
