// SPDX-License-Identifier: MIT
/// Images in the format in which the network computes, in a random order.
#pragma once

#include "digits.hpp"
#include "mlp.hpp"
#include <demi/precision/convert.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

namespace nn {

template <class T>
class image_loader {
public:
    explicit image_loader(const digits& data) : labels_(data.labels), order_(data.size()) {
        for (const float pixel : data.images) pixels_.push_back(demi::convert<T>(pixel));
        std::iota(order_.begin(), order_.end(), std::size_t{0});
    }

    std::size_t size() const { return order_.size(); }

    void shuffle(std::mt19937_64& random) { nn::shuffle(order_, random); }

    /// The images at these places of the order; valid until the next call.
    examples<T> images(std::size_t first, std::size_t count) {
        picked_pixels_.clear();
        picked_labels_.clear();
        for (std::size_t i = first; i < first + count; ++i) {
            const auto pixel =
                pixels_.begin() + static_cast<std::ptrdiff_t>(order_[i] * digits::pixels);
            picked_pixels_.insert(picked_pixels_.end(), pixel, pixel + digits::pixels);
            picked_labels_.push_back(labels_[order_[i]]);
        }
        return {picked_pixels_, picked_labels_};
    }

private:
    std::vector<T> pixels_;
    std::vector<std::uint8_t> labels_;
    std::vector<std::size_t> order_;
    std::vector<T> picked_pixels_;
    std::vector<std::uint8_t> picked_labels_;
};

/// The share of the images that a network gets right, `images_per_pass` at a time.
template <class Network, class T>
double accuracy(Network& net, image_loader<T>& data, std::size_t images_per_pass) {
    std::uint64_t correct = 0;
    for (std::size_t first = 0; first < data.size(); first += images_per_pass) {
        const std::size_t count = std::min(images_per_pass, data.size() - first);
        correct += net.count_correct(data.images(first, count));
    }
    return static_cast<double>(correct) / static_cast<double>(data.size());
}

}  // namespace nn
