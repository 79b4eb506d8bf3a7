// SPDX-License-Identifier: MIT
/// Windows of micro-batches, and sums of their gradients.
#include <demi/precision/float16.hpp>
#include <demi/training/accumulation.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <support/backends.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <vector>

TEST_CASE("a window counts items and micro-batches until it is reset") {
    demi::accumulation_window window;
    CHECK(window.empty());
    window.add(32);
    window.add(32);
    window.add(5);
    CHECK_FALSE(window.empty());
    CHECK(window.items() == 69);
    CHECK(window.micro_batches() == 3);
    window.reset();
    CHECK(window.empty());
    CHECK(window.micro_batches() == 0);
}

TEST_CASE("a micro-batch of no items is refused and not counted") {
    demi::accumulation_window window;
    window.add(4);
    CHECK(mentions(message_of<demi::invalid_argument>([&] { window.add(0); }),
                   {"0 items", "expected at least 1"}));
    CHECK(window.items() == 4);
    CHECK(window.micro_batches() == 1);
}

TEMPLATE_TEST_CASE("weighted gradients add up in the wider format", "", DEMI_TEST_BACKENDS) {
    TestType where;
    std::vector<std::vector<demi::float16>> micro{
        std::vector<demi::float16>(37, demi::float16(2.0f)),
        std::vector<demi::float16>(3, demi::float16(-8.0f))};
    std::vector<std::vector<float>> sum{std::vector<float>(37, 1.0f), std::vector<float>(3, 1.0f)};
    demi::accumulate_gradients(where, micro, sum);
    demi::accumulate_gradients(where, micro, sum, 0.25f);
    CHECK(sum[0] == std::vector<float>(37, 3.5f));
    CHECK(sum[1] == std::vector<float>(3, -9.0f));

    // A float16 sum would stop at 2048.
    std::vector<demi::float16> ones(20, demi::float16(1.0f));
    std::vector<float> many(20);
    for (int i = 0; i < 5000; ++i) demi::accumulate_gradients(where, ones, many);
    CHECK(many == std::vector<float>(20, 5000.0f));
}

TEMPLATE_TEST_CASE(
    "weights of micro-batches give the mean over all items, a short last one included", "",
    DEMI_TEST_BACKENDS) {
    TestType where;
    // Gradient of one item: a whole number, so that sums are exact. 13 items in 5 + 5 + 3.
    const std::vector<float> items{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    std::vector<float> accumulated(1);
    for (std::size_t begin = 0; begin < items.size(); begin += 5) {
        const std::size_t end = begin + 5 < items.size() ? begin + 5 : items.size();
        float mean = 0;
        for (std::size_t i = begin; i < end; ++i) mean += items[i];
        mean /= static_cast<float>(end - begin);
        const std::vector<float> micro{mean};
        const auto weight = static_cast<float>(end - begin) / 13.0f;
        demi::accumulate_gradients(where, micro, accumulated, weight);
    }
    CHECK(accumulated[0] > 6.999999f);
    CHECK(accumulated[0] < 7.000001f);
}

TEST_CASE("accumulation refuses shapes that differ and a weight that is no number") {
    reference_backend where;
    const std::vector<float> micro(3, 1.0f);
    std::vector<float> sum(4, 1.0f), fitting(3, 1.0f);
    CHECK(mentions(
        message_of<demi::invalid_argument>([&] { demi::accumulate_gradients(where, micro, sum); }),
        {"4 elements", "expected 3"}));
    CHECK(sum == std::vector<float>(4, 1.0f));
    for (const float weight :
         {std::numeric_limits<float>::infinity(), 0.0f, std::numeric_limits<float>::quiet_NaN()}) {
        CHECK(mentions(message_of<demi::invalid_argument>(
                           [&] { demi::accumulate_gradients(where, micro, fitting, weight); }),
                       {"accumulate_gradients", "weight", "expected a finite number"}));
    }
    CHECK(fitting == std::vector<float>(3, 1.0f));
}
