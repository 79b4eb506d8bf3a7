// SPDX-License-Identifier: MIT
#include <demi/host/transform.hpp>
#include <demi/precision/float8.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <support/catch.hpp>
#include <unit/host/available_isas.hpp>
#include <vector>

namespace {

using demi::bfloat16;
using demi::float16;
using demi::host_context;
using demi::host_executor;
using demi::host_isa;
using demi::tensor_list;

// Sums, products by powers of two and square roots are exact or correctly rounded on every
// instruction set, so that results can be compared bit for bit.
struct blend {
    float step = 0.5f;

    template <class Real>
    void operator()(Real gradient, Real& weight, Real& copy) const {
        using demi::max;
        using demi::sqrt;
        weight = weight - step * max(sqrt(weight * 4.0f), gradient);
        copy = weight + gradient;
    }
};

struct float_blend {
    void operator()(float gradient, float& weight, float& copy) const {
        blend{}(gradient, weight, copy);
    }
};

host_executor one_thread() { return demi::make_thread_executor(1); }

template <class T>
std::vector<T> numbers(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<T> values(count);
    for (auto& value : values) {
        value = demi::convert<T>(static_cast<float>(random() % 4096) / 64.0f);
    }
    return values;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Runs `blend` on tensors of the given formats and compares with a loop over floats.
template <class G, class W, class C, class Functor>
int mismatches(const host_context& context, std::size_t count, std::size_t offset,
               const Functor& functor) {
    const auto gradient = numbers<G>(count + offset, count + 1);
    auto weight = numbers<W>(count + offset, count + 2);
    // What an out operand holds beforehand must not matter: here it is a signalling NaN.
    std::vector<C> copy(count + offset);
    if (!copy.empty()) std::memset(static_cast<void*>(copy.data()), 0xff, copy.size() * sizeof(C));
    auto expected_weight = weight;
    auto expected_copy = copy;
    for (std::size_t i = offset; i < count + offset; ++i) {
        auto w = demi::convert<float>(weight[i]);
        float c = 0;
        blend{}(demi::convert<float>(gradient[i]), w, c);
        expected_weight[i] = demi::convert<W>(w);
        expected_copy[i] = demi::convert<C>(c);
    }
    tensor_list<const G> gradients;
    tensor_list<W> weights;
    tensor_list<C> copies;
    const std::span gradient_part(gradient.data() + offset, count);
    std::span weight_part(weight.data() + offset, count);
    std::span copy_part(copy.data() + offset, count);
    gradients.add(gradient_part);
    weights.add(weight_part);
    copies.add(copy_part);
    demi::detail::host_transform(context, functor, in(gradients), inout(weights), out(copies));
    return !same_bits(weight, expected_weight) + !same_bits(copy, expected_copy);
}

template <class G, class W, class C, class Functor>
void check_lengths(const Functor& functor) {
    const auto executor = one_thread();
    for (const host_isa isa : demi_test::available_isas()) {
        const host_context context{isa, &executor, nullptr};
        int wrong = 0;
        for (std::size_t count = 0; count <= 200; ++count) {
            wrong += mismatches<G, W, C>(context, count, count % 4, functor);
        }
        for (const std::size_t count : {511u, 512u, 513u, 1023u, 1040u, 16383u, 16384u, 16401u}) {
            wrong += mismatches<G, W, C>(context, count, 1, functor);
        }
        CAPTURE(std::string(demi::name(isa)));
        CHECK(wrong == 0);
    }
}

}  // namespace

TEST_CASE("a pass gives what a loop over floats gives, for any length, place and format") {
    SECTION("float") { check_lengths<float, float, float>(blend{}); }
    SECTION("float16 gradients") { check_lengths<float16, float, float16>(blend{}); }
    SECTION("bfloat16") { check_lengths<bfloat16, bfloat16, float>(blend{}); }
    SECTION("float8") { check_lengths<demi::float8_e5m2, float, demi::float8_e4m3>(blend{}); }
}

TEST_CASE("a functor for floats only is called number by number") {
    SECTION("float") { check_lengths<float, float, float>(float_blend{}); }
    SECTION("mixed formats") { check_lengths<bfloat16, float, float16>(float_blend{}); }
}

TEST_CASE("a pass with a double operand computes in double") {
    const auto executor = one_thread();
    std::vector<double> wide = {1.0 + 1e-12, -3.0, 1e200};
    std::vector<float> narrow = {0, 0, 0};
    std::vector<double> sum = {0.5, 0.25, 1e184};
    const tensor_list<double> wides(wide), sums(sum);
    const tensor_list<float> narrows(narrow);
    for (const host_isa isa : demi_test::available_isas()) {
        demi::detail::host_transform(
            {isa, &executor, nullptr},
            [](auto a, auto& s, auto& n) {
                static_assert(sizeof(a) == sizeof(double));
                s = a + a;
                n = a - 1.0;
            },
            in(wides), inout(sums), out(narrows));
        CHECK(sum == std::vector<double>{2.0 + 2e-12, -6.0, 2e200});
        CHECK(narrow[0] == static_cast<float>(wide[0] - 1.0));
    }
}

TEST_CASE("tensors of a list are passed one after the other, empty ones included") {
    const auto executor = one_thread();
    std::vector<std::vector<float>> a = {{1, 2, 3}, {}, {4}, std::vector<float>(700, 5.0f), {}};
    std::vector<std::vector<float16>> b;
    for (const auto& tensor : a) b.emplace_back(tensor.size());
    const auto twice = [](auto x, auto& y) { y = x + x; };
    for (const host_isa isa : demi_test::available_isas()) {
        const tensor_list<float> as(a);
        const tensor_list<float16> bs(b);
        demi::detail::host_transform({isa, &executor, nullptr}, twice, in(as), out(bs));
        CHECK(static_cast<float>(b[0][2]) == 6.0f);
        CHECK(static_cast<float>(b[2][0]) == 8.0f);
        CHECK(static_cast<float>(b[3][699]) == 10.0f);
        const tensor_list<float> none;
        demi::detail::host_transform({isa, &executor, nullptr}, twice, in(none),
                                     out(tensor_list<float16>{}));
    }
}

namespace {

struct loading {
    const float* factor;
    bool* touched;

    struct loaded {
        float factor;
        bool skip() const { return factor == 0.0f; }
        template <class Real>
        void operator()(Real& value) const {
            value = value * factor;
        }
    };
    loaded load() const {
        *touched = true;
        return {*factor};
    }
};

}  // namespace

TEST_CASE("a functor is loaded where the work runs, and may skip the pass") {
    const auto executor = one_thread();
    std::vector<float> values(100, 3.0f);
    const tensor_list<float> list(values);
    const host_context context{demi::detected_host_isa(), &executor, nullptr};
    float factor = 2.0f;
    bool touched = false;
    const loading functor{&factor, &touched};
    CHECK(!touched);
    demi::detail::host_transform(context, functor, inout(list));
    CHECK(touched);
    CHECK(values == std::vector<float>(100, 6.0f));
    factor = 0.0f;
    demi::detail::host_transform(context, functor, inout(list));
    CHECK(values == std::vector<float>(100, 6.0f));
}

TEST_CASE("stochastic rounding depends on seed, step, tensor and index only") {
    const auto first = numbers<float>(3000, 1);
    const auto second = numbers<float>(200001, 2);
    const demi::stochastic rounding{42, 7};
    std::vector<bfloat16> expected[2] = {std::vector<bfloat16>(first.size()),
                                         std::vector<bfloat16>(second.size())};
    const std::vector<float>* sources[2] = {&first, &second};
    for (std::size_t t = 0; t < 2; ++t) {
        const auto key = demi::random_key(rounding.seed, rounding.step, t);
        for (std::size_t i = 0; i < expected[t].size(); ++i) {
            const demi::stochastic_bits bits{demi::random_bits(key, i)};
            expected[t][i] = demi::convert<bfloat16>((*sources[t])[i] + 0.001f, bits);
        }
    }
    tensor_list<const float> from;
    from.add(first);
    from.add(second);
    for (const host_isa isa : demi_test::available_isas()) {
        for (const std::size_t threads : {1u, 2u, 3u, 7u}) {
            const auto executor = demi::make_thread_executor(threads);
            std::vector<bfloat16> results[2] = {std::vector<bfloat16>(first.size()),
                                                std::vector<bfloat16>(second.size())};
            tensor_list<bfloat16> to;
            to.add(results[0]);
            to.add(results[1]);
            demi::detail::host_transform(
                {isa, &executor, nullptr}, [](auto x, auto& y) { y = x + 0.001f; }, in(from),
                out(to, rounding));
            CHECK(same_bits(results[0], expected[0]));
            CHECK(same_bits(results[1], expected[1]));
        }
    }
}

TEST_CASE("truncation is a rounding of an operand like any other") {
    const auto executor = one_thread();
    std::vector<float> from = {1.999f, -1.999f, 70000.0f, 0.1f, 1e-30f};
    from.resize(40, 2047.9f);
    const tensor_list<float> list(from);
    for (const host_isa isa : demi_test::available_isas()) {
        std::vector<float16> half(40);
        std::vector<bfloat16> brain(40);
        const tensor_list<float16> halves(half);
        const tensor_list<bfloat16> brains(brain);
        demi::detail::host_transform(
            {isa, &executor, nullptr}, [](auto x, auto& h, auto& b) { h = x, b = x; }, in(list),
            out(halves, demi::toward_zero{}), out(brains, demi::toward_zero{}));
        int wrong = 0;
        for (std::size_t i = 0; i < from.size(); ++i) {
            wrong += demi::to_bits(half[i]) !=
                     demi::to_bits(demi::convert<float16>(from[i], demi::toward_zero{}));
            wrong += demi::to_bits(brain[i]) !=
                     demi::to_bits(demi::convert<bfloat16>(from[i], demi::toward_zero{}));
        }
        CHECK(wrong == 0);
    }
}

namespace {

/// A rule whose products are not exact, so that fused and separate rounding differ.
struct momentum {
    template <class Real>
    void operator()(Real gradient, Real& weight, Real& average) const {
        using demi::sqrt;
        average = 0.9f * average + 0.1f * gradient;
        weight = weight - 1e-3f * (average / (sqrt(weight * weight + 0.3f) + 1e-8f));
    }
};

}  // namespace

TEST_CASE("the result of an element depends neither on its place nor on the threads") {
    const auto gradient = numbers<float>(300000, 3);
    const auto weight = numbers<float>(300000, 4);
    for (const host_isa isa : demi_test::available_isas()) {
        std::vector<float> expected;
        for (const std::size_t threads : {1u, 2u, 3u, 7u}) {
            const auto executor = demi::make_thread_executor(threads);
            auto w = weight;
            std::vector<float> average(w.size(), 0.25f);
            const tensor_list<const float> gradients(gradient);
            const tensor_list<float> weights(w), averages(average);
            demi::detail::host_transform({isa, &executor, nullptr}, momentum{}, in(gradients),
                                         inout(weights), inout(averages));
            if (threads == 1) expected = w;
            CHECK(same_bits(w, expected));
        }
        // The same elements as many short tensors, each of which ends in an incomplete pack.
        const auto executor = one_thread();
        auto w = weight;
        std::vector<float> average(w.size(), 0.25f);
        tensor_list<const float> gradients;
        tensor_list<float> weights, averages;
        for (std::size_t i = 0; i + 40 <= 4000; i += 37) {
            const std::span<const float> g(gradient.data() + i, 37);
            std::span<float> part(w.data() + i, 37), a(average.data() + i, 37);
            gradients.add(g);
            weights.add(part);
            averages.add(a);
        }
        demi::detail::host_transform({isa, &executor, nullptr}, momentum{}, in(gradients),
                                     inout(weights), inout(averages));
        const std::size_t done = weights.element_count();
        CHECK(std::memcmp(w.data(), expected.data(), done * sizeof(float)) == 0);
    }
}

TEST_CASE("only long passes are handed to the executor") {
    std::atomic<int> runs{0}, tasks{0};
    const host_executor executor{2, [&](std::size_t count, const auto& task) {
                                     ++runs;
                                     for (std::size_t i = 0; i < count; ++i) {
                                         ++tasks;
                                         task(count - 1 - i);
                                     }
                                 }};
    const host_context context{demi::detected_host_isa(), &executor, nullptr};
    const auto increment = [](auto& x) { x = x + 1.0f; };
    std::vector<float> values(128 * 1024);
    demi::detail::host_transform(context, increment, inout(tensor_list<float>(values)));
    CHECK(runs == 0);
    values.resize(values.size() + 1);
    demi::detail::host_transform(context, increment, inout(tensor_list<float>(values)));
    CHECK(runs == 1);
    CHECK(tasks >= 2);
    CHECK(values.front() == 2.0f);
    CHECK(values[128 * 1024 - 1] == 2.0f);
    CHECK(values.back() == 1.0f);
}

TEST_CASE("an exception from a functor leaves the pass") {
    std::vector<float> values(400000, 1.0f);
    values[333333] = -1.0f;
    const tensor_list<float> list(values);
    const auto refuse = [](float& x) {
        if (x < 0) throw std::runtime_error("negative");
    };
    for (const std::size_t threads : {1u, 3u}) {
        const auto executor = demi::make_thread_executor(threads);
        CHECK_THROWS_AS(demi::detail::host_transform(
                            {demi::detected_host_isa(), &executor, nullptr}, refuse, inout(list)),
                        std::runtime_error);
    }
}

namespace {

/// Copies three lists' worth of numbers by a pass that says it copies, and compares with `convert`.
template <class To, class From>
int wrong_copies(const host_context& context, std::size_t most_cached) {
    const std::vector<std::vector<From>> from{numbers<From>(70001, 1), numbers<From>(3, 2),
                                              numbers<From>(130000, 3)};
    std::vector<std::vector<To>> to;
    for (const auto& tensor : from) to.emplace_back(tensor.size());
    const tensor_list<const From> source(from);
    const tensor_list<To> target(to);
    demi::detail::host_copy(context, in(source), out(target), most_cached);
    int wrong = 0;
    for (std::size_t t = 0; t < from.size(); ++t) {
        for (std::size_t i = 0; i < from[t].size(); ++i) {
            wrong += demi::to_bits(to[t][i]) != demi::to_bits(demi::convert<To>(from[t][i]));
        }
    }
    return wrong;
}

/// A functor that says so of itself is not called at all.
struct silent_copy {
    static constexpr bool copies = true;
    void operator()(float, float& to) const { to = 77.0f; }
};

}  // namespace

TEST_CASE("a pass that only copies converts every tensor, cached or streamed, on any threads") {
    for (const std::size_t threads : {1u, 3u}) {
        const auto executor = demi::make_thread_executor(threads);
        for (const host_isa isa : demi_test::available_isas()) {
            const host_context context{isa, &executor, nullptr};
            CAPTURE(threads);
            CAPTURE(std::string(demi::name(isa)));
            for (const std::size_t most_cached : {~std::size_t{0}, std::size_t{0}}) {
                CHECK(wrong_copies<float16, float>(context, most_cached) == 0);
                CHECK(wrong_copies<float, bfloat16>(context, most_cached) == 0);
                CHECK(wrong_copies<bfloat16, float16>(context, most_cached) == 0);
                CHECK(wrong_copies<demi::float8_e4m3, float>(context, most_cached) == 0);
                CHECK(wrong_copies<float, float>(context, most_cached) == 0);
            }
        }
    }
}

TEST_CASE("a functor that says it copies need not be called") {
    const auto executor = one_thread();
    const host_context context{demi::detected_host_isa(), &executor, nullptr};
    const std::vector<float> from{1, 2, 3};
    std::vector<float> to(3);
    demi::detail::host_transform(context, silent_copy{}, in(tensor_list<const float>(from)),
                                 out(tensor_list<float>(to)));
    CHECK(to == from);
}
