// SPDX-License-Identifier: MIT
#include <demi/precision/random_bits.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <support/catch.hpp>
#include <vector>

using namespace demi;

namespace {

constexpr int draws = 1 << 18;

/// Keys that users make without thinking, and proper ones.
const std::vector<std::uint64_t> keys = {0,
                                         1,
                                         0xffffffffffffffffu,
                                         std::uint64_t{1} << 32,
                                         random_key(0, 0, 0),
                                         random_key(0, 0, 1),
                                         random_key(0, 1, 0),
                                         random_key(1, 0, 0)};

double unit(std::uint32_t bits) { return static_cast<double>(bits) / 4294967296.0 - 0.5; }

/// Correlation of two streams of equal distribution, in standard deviations.
template <class First, class Second>
double correlation(First first, Second second) {
    double sum = 0;
    for (std::uint64_t i = 0; i < draws; ++i) sum += unit(first(i)) * unit(second(i));
    return sum * 12 / std::sqrt(static_cast<double>(draws));
}

auto stream(std::uint64_t key) {
    return [key](std::uint64_t i) { return random_bits(key, i); };
}

}  // namespace

TEST_CASE("the generator is a constant of the library") {
    // Results of a training run depend on these numbers: they may never change.
    CHECK(random_bits(0, 0) == 0x21453191u);
    CHECK(random_bits(0x0123456789abcdefu, 42) == 0xa51e88dcu);
    CHECK(random_bits(7, std::uint64_t{1} << 32) == 0xcd4da623u);
    CHECK(random_key(1, 2, 3) == 0x6ae515c1c0ac7e37u);
}

TEST_CASE("a block gives the bits of its indices") {
    const auto block = make_random_block(99, 5);
    int bad = 0;
    for (std::uint32_t low = 0; low < 1000; ++low) {
        bad += random_bits(block, low) != random_bits(99, (std::uint64_t{5} << 32) + low);
    }
    CHECK(bad == 0);
}

TEST_CASE("each bit of the stream is set half of the time") {
    for (const std::uint64_t key : keys) {
        std::array<int, 32> ones{};
        double sum = 0;
        for (std::uint64_t i = 0; i < draws; ++i) {
            const std::uint32_t bits = random_bits(key, i);
            sum += unit(bits);
            for (unsigned bit = 0; bit < 32; ++bit) ones[bit] += static_cast<int>(bits >> bit & 1);
        }
        CAPTURE(key);
        CHECK(std::abs(sum) < 5 * std::sqrt(draws / 12.0));
        int biased = 0;
        for (const int count : ones)
            biased += std::abs(count - draws / 2) > 5 * std::sqrt(draws) / 2;
        CHECK(biased == 0);
    }
}

TEST_CASE("neighbours in a stream are not correlated") {
    for (const std::uint64_t key : keys) {
        for (const std::uint64_t lag : {1u, 2u, 3u, 4u, 8u, 16u, 256u, 4096u}) {
            CAPTURE(key, lag);
            const auto later = [&](std::uint64_t i) { return random_bits(key, i + lag); };
            CHECK(std::abs(correlation(stream(key), later)) < 5);
        }
    }
}

TEST_CASE("streams of neighbouring keys, tensors, steps and seeds are not correlated") {
    for (std::size_t a = 0; a < keys.size(); ++a) {
        for (std::size_t b = a + 1; b < keys.size(); ++b) {
            CAPTURE(a, b);
            CHECK(std::abs(correlation(stream(keys[a]), stream(keys[b]))) < 5);
        }
    }
    for (std::uint64_t tensor = 0; tensor < 16; ++tensor) {
        const auto here = stream(random_key(5, 7, tensor));
        CAPTURE(tensor);
        CHECK(std::abs(correlation(here, stream(random_key(5, 7, tensor + 1)))) < 5);
        CHECK(std::abs(correlation(here, stream(random_key(5, 8, tensor)))) < 5);
        CHECK(std::abs(correlation(here, stream(random_key(6, 7, tensor)))) < 5);
    }
}

TEST_CASE("one element over many steps sees independent bits") {
    // What decides whether repeated small updates of one weight average out.
    double sum = 0;
    double products = 0;
    double last = 0;
    for (std::uint64_t step = 0; step < draws; ++step) {
        const double now = unit(random_bits(random_key(0, step, 0), 12345));
        sum += now;
        products += now * last;
        last = now;
    }
    CHECK(std::abs(sum) < 5 * std::sqrt(draws / 12.0));
    CHECK(std::abs(products) * 12 < 5 * std::sqrt(static_cast<double>(draws)));
}

TEST_CASE("pairs of neighbours fill the square evenly") {
    const auto chi_square = [](unsigned shift, auto draw) {
        std::vector<int> buckets(64 * 64);
        for (std::uint64_t i = 0; i < draws; ++i) {
            const std::uint32_t x = draw(2 * i) >> shift & 63;
            const std::uint32_t y = draw(2 * i + 1) >> shift & 63;
            ++buckets[64 * x + y];
        }
        const double expected = draws / 4096.0;
        double sum = 0;
        for (const int count : buckets) sum += (count - expected) * (count - expected) / expected;
        return (sum - 4095) / std::sqrt(2 * 4095.0);  // in standard deviations
    };
    for (const std::uint64_t key : keys) {
        CAPTURE(key);
        for (const unsigned shift : {0u, 13u, 26u}) {
            CHECK(std::abs(chi_square(shift, stream(key))) < 5);
        }
        const auto upper_words = [&](std::uint64_t i) { return random_bits(key, i << 32 | 77); };
        CHECK(std::abs(chi_square(26, upper_words)) < 5);
        const auto strided = [&](std::uint64_t i) { return random_bits(key, i * 4096); };
        CHECK(std::abs(chi_square(26, strided)) < 5);
    }
}

TEST_CASE("flipping any bit of the key or the index flips half of the result") {
    for (unsigned bit = 0; bit < 128; ++bit) {
        int flipped = 0;
        for (std::uint64_t i = 0; i < 1024; ++i) {
            const std::uint64_t key = random_key(3, i, 0);
            const std::uint64_t index = random_key(4, i, 0);
            const std::uint64_t mask = std::uint64_t{1} << bit % 64;
            const std::uint32_t other =
                bit < 64 ? random_bits(key ^ mask, index) : random_bits(key, index ^ mask);
            for (std::uint32_t rest = other ^ random_bits(key, index); rest != 0;
                 rest &= rest - 1) {
                ++flipped;
            }
        }
        CAPTURE(bit);
        CHECK(std::abs(flipped - 16 * 1024) < 6 * std::sqrt(8 * 1024.0));
    }
}

TEST_CASE("keys of seeds, steps and tensors that a run can meet are distinct") {
    std::set<std::uint64_t> seen;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        for (std::uint64_t step = 0; step < 50; ++step) {
            for (std::uint64_t tensor = 0; tensor < 50; ++tensor) {
                seen.insert(random_key(seed, step, tensor));
            }
        }
    }
    CHECK(seen.size() == 20u * 50u * 50u);
}
