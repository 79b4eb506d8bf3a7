// SPDX-License-Identifier: MIT
/// Gradient accumulation when the number of items in a window is known only at its end.
#pragma once

#include <demi/kernels/transform.hpp>
#include <demi/precision/format_traits.hpp>

#include <cstdint>

namespace demi::inline DEMI_ABI {

/// Counts the items (samples, tokens) whose summed loss went into the gradients.
///
/// When the size of the window is known beforehand, weigh each micro-batch instead (see
/// `micro_batch::weight`). Otherwise accumulate gradients of *sums* of losses, count the items
/// here, and give the window to `optimizer::step`, which divides once: the mean is exact for
/// micro-batches of any sizes, the short last one of an epoch included.
class accumulation_window {
public:
    /// Counts one micro-batch. Throws `invalid_argument` for no items.
    void add(std::uint64_t items) {
        if (items == 0) {
            detail::raise(invalid_argument(
                "accumulation_window: a micro-batch of 0 items, expected at least 1"));
        }
        items_ += items;
        ++micro_batches_;
    }

    std::uint64_t items() const noexcept { return items_; }
    std::uint64_t micro_batches() const noexcept { return micro_batches_; }
    bool empty() const noexcept { return items_ == 0; }

    /// Starts the next window.
    void reset() noexcept { items_ = micro_batches_ = 0; }

private:
    std::uint64_t items_ = 0;
    std::uint64_t micro_batches_ = 0;
};

namespace detail {

struct add_weighted {
    float weight;
    template <class Real>
    DEMI_HD void operator()(Real from, Real& into) const {
        into = into + static_cast<Real>(weight) * from;
    }
};

}  // namespace detail

/// Adds `weight` times the gradients of one micro-batch to a sum, usually of a wider format.
///
/// Throws `invalid_argument` when the shapes differ, or the weight is 0 or not finite. Cost: one
/// pass, no synchronisation.
template <backend B, tensor_source From, tensor_source Into>
void accumulate_gradients(const B& where, From&& from, Into&& into, float weight = 1.0f) {
    if (!is_finite(weight) || weight == 0.0f) {
        detail::raise(invalid_argument(detail::message("accumulate_gradients: weight of ", weight,
                                                       ", expected a finite number other than 0")));
    }
    const tensor_list<const std::remove_const_t<element_of<From>>> micro(from);
    const tensor_list<element_of<Into>> sum(into);
    demi::transform(where, detail::add_weighted{weight}, in(micro), inout(sum));
}

}  // namespace demi::inline DEMI_ABI
