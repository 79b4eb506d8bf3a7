// SPDX-License-Identifier: MIT
/// A batch in pieces that fit into memory, weighted so that their gradients add up exactly.
#pragma once

#include <demi/core/error.hpp>
#include <demi/core/tensor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

namespace demi::inline DEMI_ABI {

/// A run of consecutive samples of a batch.
///
/// `weight` is the share of the batch: the gradient of the mean loss of the batch is the sum over
/// its micro-batches of the weight times the gradient of the micro-batch's mean loss. The weights
/// of a batch add up to 1.
struct micro_batch {
    std::size_t first = 0;
    std::size_t size = 0;
    float weight = 0;

    /// The samples of this micro-batch in a container with one element per sample. Throws
    /// `invalid_argument` when the container ends before the micro-batch does.
    template <class Container>
        requires requires(Container& samples) { std::span(samples.data(), samples.size()); }
    auto of(Container& samples) const {
        const std::span all(samples.data(), samples.size());
        if (all.size() < first + size) {
            detail::raise(
                invalid_argument(detail::message("micro_batch: the container has ", all.size(),
                                                 " samples, expected at least ", first + size)));
        }
        return all.subspan(first, size);
    }

    friend constexpr bool operator==(const micro_batch&, const micro_batch&) = default;
};

/// The micro-batches of one batch, computed as they are asked for.
class micro_batches {
public:
    class iterator;

    micro_batches() = default;

    /// Micro-batches of `micro_size` samples and a shorter last one. One that would be shorter than
    /// `smallest` shares evenly with the one before it. Throws `invalid_argument` for a count or
    /// size of 0.
    micro_batches(std::size_t count, std::size_t micro_size, std::size_t smallest = 1)
        : count_(count), micro_size_(micro_size) {
        if (count == 0) {
            detail::raise(invalid_argument("split: the batch has 0 samples, expected at least 1"));
        }
        if (micro_size == 0) {
            detail::raise(
                invalid_argument("split: the micro-batch size is 0, expected at least 1"));
        }
        steps_ = (count - 1) / micro_size + 1;
        last_ = count - (steps_ - 1) * micro_size;
        if (last_ < smallest && steps_ > 1) last_ = (last_ + micro_size) / 2;
    }

    std::size_t size() const noexcept { return steps_; }

    /// Samples in all of them.
    std::size_t sample_count() const noexcept { return count_; }

    /// The micro-batch at `index`, which must be less than `size()`.
    micro_batch operator[](std::size_t index) const noexcept {
        const bool is_last = index + 1 == steps_;
        const std::size_t first = is_last ? count_ - last_ : index * micro_size_;
        const std::size_t end = is_last ? count_ : std::min(first + micro_size_, count_ - last_);
        const auto share = static_cast<double>(end - first) / static_cast<double>(count_);
        return {first, end - first, static_cast<float>(share)};
    }

    iterator begin() const;
    iterator end() const;

private:
    std::size_t count_ = 0;
    std::size_t micro_size_ = 0;
    std::size_t steps_ = 0;
    std::size_t last_ = 0;
};

class micro_batches::iterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = micro_batch;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = micro_batch;

    iterator() = default;
    iterator(const micro_batches& batches, std::size_t index) : batches_(batches), index_(index) {}

    micro_batch operator*() const { return batches_[index_]; }
    iterator& operator++() {
        ++index_;
        return *this;
    }
    iterator operator++(int) {
        iterator before = *this;
        ++index_;
        return before;
    }
    friend bool operator==(const iterator& a, const iterator& b) { return a.index_ == b.index_; }

private:
    micro_batches batches_;
    std::size_t index_ = 0;
};

inline micro_batches::iterator micro_batches::begin() const { return {*this, 0}; }
inline micro_batches::iterator micro_batches::end() const { return {*this, steps_}; }

/// What can be split: a number of samples, or something with as many elements as samples.
template <class Batch>
concept splittable = std::integral<std::remove_cvref_t<Batch>> || requires(const Batch& batch) {
    { batch.size() } -> std::convertible_to<std::size_t>;
};

namespace detail {

template <splittable Batch>
std::size_t sample_count(const Batch& batch) {
    if constexpr (std::integral<Batch>) {
        if constexpr (std::signed_integral<Batch>) {
            if (batch < 0) {
                raise(invalid_argument(
                    message("split: the batch has ", batch, " samples, expected at least 1")));
            }
        }
        return static_cast<std::size_t>(batch);
    } else {
        return static_cast<std::size_t>(batch.size());
    }
}

}  // namespace detail

/// Splits a batch, given by its number of samples or as a container. See `micro_batches`.
template <splittable Batch>
micro_batches split(const Batch& batch, std::size_t micro_size, std::size_t smallest = 1) {
    return {detail::sample_count(batch), micro_size, smallest};
}

/// Splits a batch whose loss is a mean over items, such as the tokens that are not padding:
/// `item_counts` has one entry per sample, and a weight is a share of the items. Throws
/// `invalid_argument` when there are no items at all.
inline std::vector<micro_batch> split_by_items(std::span<const std::size_t> item_counts,
                                               std::size_t micro_size, std::size_t smallest = 1) {
    std::vector<micro_batch> pieces;
    std::size_t total = 0;
    for (const std::size_t items : item_counts) total += items;
    for (micro_batch piece : micro_batches(item_counts.size(), micro_size, smallest)) {
        std::size_t items = 0;
        for (const std::size_t count : piece.of(item_counts)) items += count;
        if (total == 0) {
            detail::raise(invalid_argument(detail::message(
                "split: ", item_counts.size(), " samples have 0 items, expected at least 1")));
        }
        piece.weight = static_cast<float>(static_cast<double>(items) / static_cast<double>(total));
        pieces.push_back(piece);
    }
    return pieces;
}

}  // namespace demi::inline DEMI_ABI
