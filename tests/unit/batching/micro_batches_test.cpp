// SPDX-License-Identifier: MIT
#include <demi/batching/micro_batches.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <list>
#include <random>
#include <string>
#include <support/catch.hpp>
#include <vector>

namespace {

std::vector<std::size_t> sizes(const demi::micro_batches& pieces) {
    std::vector<std::size_t> result;
    for (const demi::micro_batch piece : pieces) result.push_back(piece.size);
    return result;
}

using size_list = std::vector<std::size_t>;

template <class Call>
std::string message_of(Call call) {
    try {
        call();
    } catch (const demi::invalid_argument& refusal) {
        return refusal.what();
    }
    return "nothing was thrown";
}

}  // namespace

TEST_CASE("A batch is cut into full micro-batches and a short last one (P8)") {
    CHECK(sizes(demi::split(32, 6)) == size_list{6, 6, 6, 6, 6, 2});
    CHECK(sizes(demi::split(32, 8)) == size_list{8, 8, 8, 8});
    CHECK(sizes(demi::split(3, 8)) == size_list{3});
    CHECK(demi::split(32, 6)[5] == demi::micro_batch{30, 2, 2.0f / 32});
}

TEST_CASE("A last micro-batch below the smallest shares with the one before it (P61)") {
    const demi::micro_batches pieces = demi::split(1000, 3, 2);
    std::size_t threes = 0;
    std::size_t twos = 0;
    for (const demi::micro_batch piece : pieces) {
        if (piece.size == 3) ++threes;
        if (piece.size == 2) ++twos;
    }
    CHECK(threes == 332);
    CHECK(twos == 2);
    CHECK(pieces.size() == 334);
    CHECK(sizes(demi::split(1, 3, 2)) == size_list{1});
}

TEST_CASE("Micro-batches hold every sample once, none is empty, and the weights add up to one") {
    std::mt19937_64 random(1);
    std::size_t wrong = 0;
    for (int i = 0; i < 5000; ++i) {
        const std::size_t count = 1 + random() % (i % 2 ? 3000 : 20);
        const std::size_t micro = 1 + random() % (i % 3 ? 300 : 5);
        const std::size_t smallest = 1 + random() % 4;
        const demi::micro_batches pieces = demi::split(count, micro, smallest);
        std::size_t next = 0;
        double weights = 0;
        std::size_t visited = 0;
        for (const demi::micro_batch piece : pieces) {
            if (piece.first != next || piece.size == 0 || piece.size > micro) ++wrong;
            if (piece != pieces[visited++]) ++wrong;
            next += piece.size;
            weights += static_cast<double>(piece.weight);
        }
        if (next != count || visited != pieces.size()) ++wrong;
        if (pieces.sample_count() != count) ++wrong;
        if (std::abs(weights - 1) > 1e-6) ++wrong;
    }
    CHECK(wrong == 0);
}

TEST_CASE("Weighted means of micro-batches add up to the mean of the batch") {
    std::mt19937_64 random(2);
    std::size_t wrong = 0;
    for (int i = 0; i < 2000; ++i) {
        std::vector<double> samples(1 + random() % 500);
        double sum = 0;
        for (double& sample : samples) {
            sample = static_cast<double>(random() % 1000);
            sum += sample;
        }
        double accumulated = 0;
        for (const demi::micro_batch piece : demi::split(samples, 1 + random() % 64)) {
            double part = 0;
            for (const double sample : piece.of(samples)) part += sample;
            accumulated +=
                static_cast<double>(piece.weight) * (part / static_cast<double>(piece.size));
        }
        const double mean = sum / static_cast<double>(samples.size());
        if (std::abs(accumulated - mean) > 1e-6 * (1 + mean)) ++wrong;
    }
    CHECK(wrong == 0);
}

TEST_CASE("A short last window is weighted by what it holds, not by the full count (P11)") {
    const demi::micro_batches window = demi::split(20, 10);
    REQUIRE(window.size() == 2);
    CHECK(window[0].weight == 0.5f);
    CHECK(window[1].weight == 0.5f);
    CHECK(demi::split(30, 10, 1).size() == 3);
}

TEST_CASE("Splitting again after a failure starts from the batch itself (P34)") {
    const std::vector<int> batch(16, 1);
    for (const std::size_t micro : {std::size_t{16}, std::size_t{8}, std::size_t{4}}) {
        int processed = 0;
        for (const demi::micro_batch piece : demi::split(batch, micro)) {
            for (const int sample : piece.of(batch)) processed += sample;
        }
        CHECK(processed == 16);
    }
}

TEST_CASE("A batch is a count or anything with a size") {
    CHECK(demi::split(std::list<int>{1, 2, 3}, 2).size() == 2);
    CHECK(demi::split(std::int64_t{5}, 2).size() == 3);
    CHECK(demi::split(5u, 2).size() == 3);
    std::vector<int> samples{1, 2, 3};
    demi::split(samples, 2)[1].of(samples)[0] = 7;
    CHECK(samples[2] == 7);
}

TEST_CASE("Item weights divide the loss sum once by all items of the batch (P10)") {
    const std::vector<std::size_t> tokens{60, 40, 10};
    const auto pieces = demi::split_by_items(tokens, 2);
    REQUIRE(pieces.size() == 2);
    const double loss = static_cast<double>(pieces[0].weight) * (200.0 / 100) +
                        static_cast<double>(pieces[1].weight) * (40.0 / 10);
    CHECK(std::abs(loss - 240.0 / 110) < 1e-6);
}

TEST_CASE("Micro-batches without items weigh nothing") {
    const std::vector<std::size_t> tokens{0, 0, 5};
    const auto pieces = demi::split_by_items(tokens, 2);
    CHECK(pieces[0].weight == 0.0f);
    CHECK(pieces[1].weight == 1.0f);
}

TEST_CASE("Splitting nothing, or into nothing, is refused with the value") {
    CHECK(message_of([] { demi::split(0, 4); }).find("0 samples") != std::string::npos);
    CHECK(message_of([] { demi::split(-3, 4); }).find("-3 samples") != std::string::npos);
    CHECK(message_of([] { demi::split(4, 0); }).find("size is 0") != std::string::npos);
    CHECK_THROWS_AS(demi::split(std::vector<int>{}, 4), demi::invalid_argument);
    CHECK_THROWS_AS(demi::split_by_items(std::vector<std::size_t>{}, 4), demi::invalid_argument);
    CHECK(message_of([] {
              demi::split_by_items(std::vector<std::size_t>{0, 0}, 4);
          }).find("2 samples have 0 items") != std::string::npos);
    const std::vector<int> shorter(3);
    CHECK(message_of([&] { demi::split(8, 4)[1].of(shorter); }).find("at least 8") !=
          std::string::npos);
}
