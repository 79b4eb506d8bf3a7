// SPDX-License-Identifier: MIT
#include "arrays.hpp"
#include <demi/host/parallel.hpp>

namespace bench {

void share_out(std::size_t threads, std::size_t count,
               const std::function<void(std::size_t, std::size_t)>& loop) {
    constexpr std::size_t step = 1024;
    if (threads < 2 || count < 2 * step) {
        loop(0, count);
        return;
    }
    const std::size_t part = (count / threads + step - 1) / step * step;
    demi::default_executor().run(threads, [&](std::size_t index) {
        const std::size_t begin = index * part < count ? index * part : count;
        const std::size_t end = index + 1 == threads || begin + part > count ? count : begin + part;
        if (begin < end) loop(begin, end);
    });
}

}  // namespace bench
