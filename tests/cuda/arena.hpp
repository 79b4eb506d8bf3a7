// SPDX-License-Identifier: MIT
/// Tensors at chosen places within one piece of memory, on the device and in a copy on the host.
#pragma once

#include <demi/core/tensor.hpp>
#include <demi/cuda/cuda_backend.cuh>
#include <demi/precision/convert.hpp>

#include <cstddef>
#include <random>
#include <span>
#include <support/bits.hpp>
#include <support/random_values.hpp>
#include <utility>
#include <vector>

/// Where the tensors of a list stand: sizes, and how many elements after a multiple of 64 each one
/// begins.
struct arena_layout {
    std::vector<std::size_t> sizes;
    std::vector<std::size_t> offsets;

    std::size_t offset(std::size_t tensor) const {
        return offsets.empty() ? 0 : offsets[tensor % offsets.size()];
    }
};

/// The space between the tensors belongs to the values that are compared: a pass that writes beside
/// its tensors is seen.
template <class T>
class arena {
public:
    using element = std::remove_const_t<T>;

    arena(const demi::cuda_backend& where, const arena_layout& layout, unsigned seed)
        : where_(where) {
        std::size_t end = gap;
        std::vector<std::size_t> begins;
        for (std::size_t i = 0; i < layout.sizes.size(); ++i) {
            begins.push_back((end + gap - 1) / gap * gap + layout.offset(i));
            end = begins.back() + layout.sizes[i] + gap;
        }
        std::mt19937_64 random(seed);
        host_.resize(end);
        for (auto& value : host_) value = random_finite<element>(random);
        device_ = where.make_buffer<element>(end);
        for (std::size_t i = 0; i < begins.size(); ++i) {
            const std::span<element> on_host(host_.data() + begins[i], layout.sizes[i]);
            const std::span<element> on_device(device_.data() + begins[i], layout.sizes[i]);
            host.add(on_host);
            device.add(on_device);
        }
        upload();
    }
    arena(const arena&) = delete;

    /// Makes all magnitudes less than 2, so that squares do not overflow.
    void make_small() {
        constexpr auto top_exponent_bit = demi::bits_of<element>{1}
                                          << (demi::format_traits<element>::bits - 2);
        for (auto& value : host_) {
            const auto bits =
                static_cast<demi::bits_of<element>>(demi::to_bits(value) & ~top_exponent_bit);
            value = demi::from_bits<element>(bits);
        }
        upload();
    }

    void upload() { where_.upload(host_.data(), device_.data(), host_.size()); }

    /// Whether device and host hold the same bits, between the tensors too.
    bool agrees() const {
        std::vector<element> found(host_.size());
        where_.download(device_.data(), found.data(), found.size());
        return same_bits(found, host_);
    }

    demi::tensor_list<element> host;
    demi::tensor_list<element> device;

private:
    static constexpr std::size_t gap = 64;

    demi::cuda_backend where_;
    std::vector<element> host_;
    demi::cuda_buffer<element> device_;
};
