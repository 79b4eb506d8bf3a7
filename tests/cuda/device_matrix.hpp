// SPDX-License-Identifier: MIT
/// Matrices on the device for tests of products.
#pragma once

#include <demi/cuda/cuda_backend.cuh>

#include <cstddef>
#include <support/matrices.hpp>

/// A matrix with poisoned padding, on the host and on the device.
template <class T>
class device_matrix {
public:
    /// `alignment`: bytes that the address and the distance of lines are a multiple of, and of no
    /// larger power of two.
    device_matrix(const demi::cuda_backend& where, std::size_t rows, std::size_t columns,
                  demi::layout order, std::size_t alignment = sizeof(T))
        : where_(where),
          order_(order),
          offset_(alignment / sizeof(T)),
          host_(rows, columns, order, padding(order == demi::layout::row_major ? columns : rows)),
          device_(where.template make_buffer<T>(offset_ + host_.memory().size())) {
        upload();
    }

    device_matrix& fill(matrix_rng& rng, float largest = 1) {
        host_.fill(rng, largest);
        return upload();
    }
    template <class Function>
    device_matrix& set_each(const Function& value) {
        for (std::size_t r = 0; r < host().rows(); ++r) {
            for (std::size_t c = 0; c < host().columns(); ++c) {
                host_.view()(r, c) = demi::convert<T>(static_cast<float>(value(r, c)));
            }
        }
        return upload();
    }
    device_matrix& set(std::size_t row, std::size_t column, float value) {
        host_.view()(row, column) = demi::convert<T>(value);
        return upload();
    }

    demi::matrix_view<const T> host() const { return host_.view(); }
    demi::matrix_view<T> view() {
        return {device_.data() + offset_, host().rows(), host().columns(),
                host().leading_dimension(), order_};
    }
    demi::matrix_view<const T> constant() { return view(); }

    /// What the device has now.
    padded_matrix<T> result() const {
        padded_matrix<T> now = host_;
        where_.download(device_.data() + offset_, now.view().data(), now.memory().size());
        return now;
    }

private:
    std::size_t padding(std::size_t line) const {
        std::size_t leading = line + 1;
        while (leading % offset_ != 0 || leading % (2 * offset_) == 0) ++leading;
        return leading - line;
    }
    device_matrix& upload() {
        where_.upload(host_.memory().data(), device_.data() + offset_, host_.memory().size());
        return *this;
    }

    demi::cuda_backend where_;
    demi::layout order_;
    std::size_t offset_;
    padded_matrix<T> host_;
    demi::cuda_buffer<T> device_;
};

inline demi::layout bit_layout(std::size_t bits, int bit) {
    return bits >> bit & 1 ? demi::layout::column_major : demi::layout::row_major;
}
