// SPDX-License-Identifier: MIT
#include "../../../examples/nn/image_loader.hpp"
#include "../../../examples/nn/mlp.hpp"
#include <demi/host/host_backend.hpp>
#include <demi/precision/policy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <support/catch.hpp>
#include <vector>

namespace {

struct double_precision {
    using compute_type = double;
    using param_type = double;
};

const std::vector<std::size_t> small_network = {5, 7, 6, 4};

/// Random features with random labels.
template <class T>
struct random_batch {
    explicit random_batch(std::size_t rows) {
        std::mt19937_64 random(rows);
        for (std::size_t i = 0; i < rows * small_network.front(); ++i) {
            features.push_back(T(static_cast<float>(random() % 2001) / 1000 - 1));
        }
        for (std::size_t i = 0; i < rows; ++i) {
            labels.push_back(static_cast<std::uint8_t>(random() % small_network.back()));
        }
    }

    nn::examples<T> rows(std::size_t first, std::size_t count) const {
        const std::size_t width = small_network.front();
        return {std::span(features).subspan(first * width, count * width),
                std::span(labels).subspan(first, count)};
    }

    std::vector<T> features;
    std::vector<std::uint8_t> labels;
};

template <class Policy>
using network = nn::mlp<Policy, demi::host_backend>;

/// All values of a list, as doubles.
template <class List>
std::vector<double> values_of(const List& list) {
    std::vector<double> values;
    for (const auto tensor : list) {
        for (const auto value : tensor)
            values.push_back(static_cast<double>(demi::convert<float>(value)));
    }
    return values;
}

/// The largest difference, as a share of the largest magnitude.
double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
    double difference = 0;
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        difference = std::max(difference, std::abs(a[i] - b[i]));
        largest = std::max(largest, std::abs(b[i]));
    }
    return difference / largest;
}

template <class Policy>
std::vector<double> gradients_of(std::size_t rows, float scale) {
    network<Policy> net(demi::host_backend{}, small_network, 3);
    const random_batch<typename network<Policy>::compute_type> data(rows);
    net.backward(data.rows(0, rows), scale);
    auto values = values_of(net.gradients());
    for (double& value : values) value /= static_cast<double>(scale);
    return values;
}

std::string write_file(const std::string& name, const std::string& text) {
    std::ofstream(name, std::ios::binary) << text;
    return name;
}

std::string message_for_file(const std::string& text) {
    const std::string path = write_file("nn_test_digits.csv", text);
    std::string message;
    try {
        nn::load_digits(path);
    } catch (const nn::bad_data& failure) {
        message = failure.what();
    }
    std::remove(path.c_str());
    return message;
}

std::string blank_line(const std::string& first, const std::string& label) {
    std::string line = first;
    for (int i = 1; i < 64; ++i) line += ",0";
    return line + "," + label + "\n";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

nn::digits numbered_images(std::size_t count) {
    nn::digits all;
    for (std::size_t i = 0; i < count; ++i) {
        const std::vector<float> image(nn::digits::pixels, static_cast<float>(i));
        all.add(image, static_cast<std::uint8_t>(i % nn::digits::classes));
    }
    return all;
}

}  // namespace

TEST_CASE("the gradient of every parameter agrees with finite differences") {
    constexpr std::size_t rows = 9;
    network<double_precision> net(demi::host_backend{}, small_network, 7);
    const random_batch<double> data(rows);
    const auto mean_loss = [&] {
        net.backward(data.rows(0, rows), 1);
        return net.take_loss_sum() / static_cast<double>(rows);
    };

    net.zero_gradients();
    mean_loss();
    const std::vector<double> computed = [&] {
        std::vector<double> values;
        for (const auto tensor : net.gradients()) {
            values.insert(values.end(), tensor.begin(), tensor.end());
        }
        return values;
    }();

    constexpr double step = 1e-5;
    std::vector<double> measured;
    for (const auto tensor : net.parameters()) {
        for (double& weight : tensor) {
            const double start = weight;
            weight = start + step;
            const double above = mean_loss();
            weight = start - step;
            const double below = mean_loss();
            weight = start;
            measured.push_back((above - below) / (2 * step));
        }
    }
    REQUIRE(computed.size() == 5 * 7 + 7 + 7 * 6 + 6 + 6 * 4 + 4);
    CHECK(relative_difference(computed, measured) < 1e-7);
}

TEST_CASE("gradients in a lower precision agree with those in double") {
    const auto exact = gradients_of<double_precision>(16, 1);
    CHECK(relative_difference(gradients_of<demi::full_float32>(16, 1), exact) < 1e-5);
    CHECK(relative_difference(gradients_of<demi::mixed_float16>(16, 1024), exact) < 0.02);
    CHECK(relative_difference(gradients_of<demi::mixed_bfloat16>(16, 1), exact) < 0.1);
}

TEST_CASE("the loss scale passes through to the gradients, and float16 loses them without one") {
    constexpr float tiny = 0x1p-22f;
    const auto exact = gradients_of<double_precision>(16, 1);
    const auto lost = gradients_of<demi::mixed_float16>(16, tiny);
    CHECK(relative_difference(gradients_of<demi::full_float32>(16, tiny), exact) < 1e-5);
    CHECK(relative_difference(lost, exact) > 0.05);
}

TEST_CASE("weighted micro-batches of unequal sizes add up to the gradient of the batch") {
    constexpr std::size_t rows = 10;
    const random_batch<double> data(rows);
    network<double_precision> whole(demi::host_backend{}, small_network, 5);
    network<double_precision> parts(demi::host_backend{}, small_network, 5);
    whole.backward(data.rows(0, rows), 1);
    parts.backward(data.rows(0, 4), 0.4f);
    parts.backward(data.rows(4, 4), 0.4f);
    parts.backward(data.rows(8, 2), 0.2f);
    CHECK(relative_difference(values_of(parts.gradients()), values_of(whole.gradients())) < 1e-6);

    SECTION("and so do their losses") {
        const double total = whole.take_loss_sum();
        CHECK(std::abs(parts.take_loss_sum() - total) < 1e-12 * total);
        CHECK(parts.take_loss_sum() == 0);
    }
    SECTION("until they are cleared") {
        parts.zero_gradients();
        const auto values = values_of(parts.gradients());
        CHECK(std::count(values.begin(), values.end(), 0.0) ==
              static_cast<std::ptrdiff_t>(values.size()));
    }
}

TEST_CASE("the network counts the examples that it gets right") {
    constexpr std::size_t rows = 32;
    const random_batch<float> data(rows);
    network<demi::full_float32> net(demi::host_backend{}, small_network, 1);
    std::uint64_t correct_alone = 0;
    for (std::size_t i = 0; i < rows; ++i) correct_alone += net.count_correct(data.rows(i, 1));
    CHECK(net.count_correct(data.rows(0, rows)) == correct_alone);
    CHECK(correct_alone > 0);
    CHECK(correct_alone < rows);
}

TEST_CASE("activation gradients cover the examples of the last micro-batch only") {
    network<demi::full_float32> net(demi::host_backend{}, small_network, 1);
    const random_batch<float> data(8);
    CHECK(net.activation_gradients().empty());
    net.backward(data.rows(0, 8), 1);
    net.backward(data.rows(0, 3), 1);
    CHECK(net.activation_gradients().element_count() == 3 * (7 + 6 + 4));
}

TEST_CASE("a file of digits that cannot be used is refused with the place and the expectation") {
    CHECK(contains(message_for_file(blank_line("0", "3") + blank_line("17", "3")),
                   "line 2: value '17' in column 1, expected an integer from 0 to 16"));
    CHECK(contains(message_for_file(blank_line("0", "10")),
                   "line 1: value '10' in column 65, expected an integer from 0 to 9"));
    CHECK(contains(message_for_file(blank_line("x", "1")), "value 'x' in column 1"));
    CHECK(contains(message_for_file(blank_line("", "1")), "value '' in column 1"));
    CHECK(
        contains(message_for_file("1,2,3\n"), "line 1: 3 values, expected 64 pixels and a digit"));
    CHECK(contains(message_for_file(blank_line("0,0", "1")), "66 values"));
    CHECK(contains(message_for_file(blank_line("16", "9")), "holds 1 images, expected 1797"));
    CHECK(contains(message_for_file(""), "holds 0 images"));

    CHECK_THROWS_AS(nn::load_digits("no/such/digits.csv"), nn::bad_data);
}

TEST_CASE("the split keeps every image once, and every digit's share") {
    const nn::digits all = numbered_images(1797);
    const auto parts = nn::split_digits(all, 360, 1);
    REQUIRE(parts.test.size() == 360);
    REQUIRE(parts.train.size() == 1437);

    std::vector<int> seen(all.size());
    std::vector<int> of_digit(nn::digits::classes);
    int wrong_labels = 0;
    for (const auto* part : {&parts.train, &parts.test}) {
        for (std::size_t i = 0; i < part->size(); ++i) {
            const auto number = static_cast<std::size_t>(part->image(i)[0]);
            ++seen[number];
            if (part->labels[i] != number % nn::digits::classes) ++wrong_labels;
        }
    }
    CHECK(wrong_labels == 0);
    CHECK(std::count(seen.begin(), seen.end(), 1) == 1797);
    for (const auto label : parts.test.labels) ++of_digit[label];
    for (const int count : of_digit) CHECK((count == 35 || count == 36 || count == 37));

    CHECK(nn::split_digits(all, 360, 1).test.images == parts.test.images);
    CHECK(nn::split_digits(all, 360, 2).test.images != parts.test.images);
}
