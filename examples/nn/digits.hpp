// SPDX-License-Identifier: MIT
/// The handwritten digits: reading the file, and splitting it for training and testing.
#pragma once

#include <demi/core/error.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nn {

/// Images of 8 x 8 pixels from 0 to 1, row by row, and what they show.
struct digits {
    static constexpr std::size_t pixels = 64;
    static constexpr std::size_t classes = 10;
    static constexpr std::size_t images_in_file = 1797;

    std::vector<float> images;
    std::vector<std::uint8_t> labels;

    std::size_t size() const { return labels.size(); }
    std::span<const float> image(std::size_t index) const {
        return std::span(images).subspan(index * pixels, pixels);
    }
    void add(std::span<const float> image, std::uint8_t label) {
        images.insert(images.end(), image.begin(), image.end());
        labels.push_back(label);
    }
};

/// The data file is missing, truncated or malformed.
class bad_data : public demi::error {
public:
    using demi::error::error;
};

namespace detail {

/// Reads one line of 64 pixels and a digit; `where` names the line in messages.
inline void add_line(digits& data, std::string_view line, const std::string& where) {
    constexpr int brightest = 16;
    std::array<int, digits::pixels + 1> values{};
    std::size_t column = 0;
    for (std::size_t begin = 0; begin <= line.size(); ++column) {
        const auto end = std::min(line.find(',', begin), line.size());
        const auto text = line.substr(begin, end - begin);
        const int limit = column == digits::pixels ? int{digits::classes} - 1 : brightest;
        int value = -1;
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
        if (!whole || value < 0 || value > limit) {
            throw bad_data(where + ": value '" + std::string(text) + "' in column " +
                           std::to_string(column + 1) + ", expected an integer from 0 to " +
                           std::to_string(limit));
        }
        if (column < values.size()) values[column] = value;
        begin = end + 1;
    }
    if (column != values.size()) {
        throw bad_data(where + ": " + std::to_string(column) +
                       " values, expected 64 pixels and a digit");
    }
    std::array<float, digits::pixels> image{};
    for (std::size_t i = 0; i < image.size(); ++i) {
        image[i] = static_cast<float>(values[i]) / brightest;
    }
    data.add(image, static_cast<std::uint8_t>(values[digits::pixels]));
}

}  // namespace detail

/// Reads `digits.csv`. Throws `bad_data` for a file that is missing, truncated or malformed.
inline digits load_digits(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw bad_data("digits: cannot open '" + path +
                       "', expected the file that examples/data/make_digits.py writes");
    }
    digits data;
    std::string line;
    for (std::size_t number = 1; std::getline(file, line); ++number) {
        if (line.ends_with('\r')) line.pop_back();
        detail::add_line(data, line, "digits: " + path + ", line " + std::to_string(number));
    }
    if (data.size() != digits::images_in_file) {
        throw bad_data("digits: " + path + " holds " + std::to_string(data.size()) +
                       " images, expected " + std::to_string(digits::images_in_file));
    }
    return data;
}

/// Shuffles in place; unlike std::shuffle, the same everywhere.
template <class T>
void shuffle(std::vector<T>& values, std::mt19937_64& random) {
    for (std::size_t left = values.size(); left > 1; --left) {
        std::swap(values[left - 1], values[random() % left]);
    }
}

struct digits_split {
    digits train;
    digits test;
};

/// Splits so that every digit has the same share, up to one image, in both parts.
inline digits_split split_digits(const digits& all, std::size_t test_images, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::size_t> by_digit;
    for (std::size_t digit = 0; digit < digits::classes; ++digit) {
        std::vector<std::size_t> same;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all.labels[i] == digit) same.push_back(i);
        }
        shuffle(same, random);
        by_digit.insert(by_digit.end(), same.begin(), same.end());
    }
    digits_split parts;
    for (std::size_t i = 0; i < by_digit.size(); ++i) {
        const bool to_test =
            (i + 1) * test_images / by_digit.size() > i * test_images / by_digit.size();
        (to_test ? parts.test : parts.train).add(all.image(by_digit[i]), all.labels[by_digit[i]]);
    }
    return parts;
}

}  // namespace nn
