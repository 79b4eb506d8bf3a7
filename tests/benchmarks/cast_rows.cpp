// SPDX-License-Identifier: MIT
/// Casts, in cache beside other software, beyond it beside a copy of the same bytes.
#include "arrays.hpp"
#include "hand_casts.hpp"
#include "limits.hpp"
#include "peers.hpp"
#include "session.hpp"
#include <demi/kernels/cast.hpp>
#include <demi/precision/bfloat16.hpp>
#include <demi/precision/float16.hpp>

#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <type_traits>
#include <utility>

namespace bench {

namespace {

constexpr std::size_t beyond_cache = std::size_t{1} << 26;
constexpr std::size_t worth_sharing = std::size_t{1} << 17;

template <class T>
constexpr number number_of = number::float32;
template <>
constexpr number number_of<demi::float16> = number::float16;
template <>
constexpr number number_of<demi::bfloat16> = number::bfloat16;

template <class T>
const char* short_name() {
    switch (number_of<T>) {
        case number::float16:
            return "f16";
        case number::bfloat16:
            return "bf16";
        default:
            return "f32";
    }
}

std::uint16_t* bits(demi::float16* values) { return reinterpret_cast<std::uint16_t*>(values); }
std::uint16_t* bits(demi::bfloat16* values) { return reinterpret_cast<std::uint16_t*>(values); }
float* bits(float* values) { return values; }

template <class From, class To>
auto hand_loops() {
    if constexpr (std::is_same_v<To, demi::float16>) {
        return hand::float16_from_float();
    } else if constexpr (std::is_same_v<To, demi::bfloat16>) {
        return hand::bfloat16_from_float();
    } else if constexpr (std::is_same_v<From, demi::float16>) {
        return hand::float_from_float16();
    } else {
        return hand::float_from_bfloat16();
    }
}

/// What moves the bytes of a cast and computes nothing.
template <class From>
auto streams() {
    if constexpr (std::is_same_v<From, float>) {
        return hand::narrow_streams();
    } else {
        return hand::widen_streams();
    }
}

/// A number near `value` that lies in the middle between two of the narrow format: the hard case of
/// rounding, which random numbers hardly meet.
template <class To>
float tie(float value) {
    if constexpr (std::is_same_v<To, float>) {
        return value;
    } else {
        constexpr std::uint32_t half = number_of<To> == number::float16 ? 0x1000 : 0x8000;
        const auto bits = std::bit_cast<std::uint32_t>(value);
        return std::bit_cast<float>((bits & ~(2 * half - 1)) | half);
    }
}

std::string count_text(std::size_t count) {
    return count >= std::size_t{1} << 20 ? std::to_string(count >> 20) + " Mi"
                                         : std::to_string(count >> 10) + " Ki";
}

/// One cast at one size. Every contender writes into an array of its own.
template <class From, class To>
class cast_case {
public:
    cast_case(session& where, std::size_t count)
        : where_(where), count_(count), from_(count), to_(count) {
        array<float> values(count);
        fill_uniform(values.span(), 1);
        for (std::size_t i = 0; i < count; i += 8) values[i] = tie<To>(values[i]);
        demi::cast(where.backend(), std::as_const(values).span(), from_.span());
        all_.push_back({"demi", role::ours, work(), [this] {
                            demi::cast(where_.backend(), std::as_const(from_).span(), to_.span());
                        }});
        all_.front().run();
    }

    void add_peers() {
        for (const auto& [name, function, exact] : hand_loops<From, To>()) {
            add_hand_loop(name, function, exact, 1);
            if (where_.threads() > 1 && count_ >= worth_sharing) {
                add_hand_loop(name + " shared out", function, exact, where_.threads());
            }
        }
        add("Eigen", [&](To* target) {
            return eigen::cast(number_of<From>, from_.data(), number_of<To>, target, count_);
        });
        add("oneDNN", [&](To* target) {
            return onednn::reorder(number_of<From>, from_.data(), number_of<To>, target, count_,
                                   implementation_);
        });
    }

    /// Loops that read and write as many bytes as the cast does.
    void add_streams() {
        for (const auto& [name, function, exact] : streams<From>()) {
            add_hand_loop(name, function, exact, where_.threads(), role::limit);
        }
    }

    /// The copy reads and writes half of the bytes each.
    void add_copies() {
        const std::size_t half = count_ * (sizeof(From) + sizeof(To)) / 2;
        const std::size_t threads = count_ < worth_sharing ? 1 : where_.threads();
        source_ = std::make_unique<array<std::byte>>(half);
        target_ = std::make_unique<array<std::byte>>(half);
        for (contender& one : limits::copies(source_->data(), target_->data(), half, threads)) {
            all_.push_back(std::move(one));
        }
    }

    void measure(const std::string& work_name, const std::string& name,
                 const std::vector<criterion>& questions) {
        where_.measure({.work = work_name,
                        .name = name,
                        .unit = "GB/s",
                        .remark = implementation_.empty() ? "" : "oneDNN ran " + implementation_},
                       all_, questions);
    }

private:
    double work() const { return static_cast<double>(count_ * (sizeof(From) + sizeof(To))); }

    template <class Make>
    void add(const std::string& name, Make make, role part = role::peer) {
        array<To>& target = targets_.emplace_back(count_);
        task run = make(target.data());
        if (!run) return;
        run();
        if (part == role::peer) {
            require(std::memcmp(bits(target.data()), bits(to_.data()), count_ * sizeof(To)) == 0,
                    name, std::string(short_name<From>()) + " to " + short_name<To>());
        }
        all_.push_back({name, part, work(), std::move(run)});
    }

    template <class Function>
    void add_hand_loop(const std::string& name, Function function, bool exact, std::size_t threads,
                       role part = role::peer) {
        add(
            name,
            [&](To* target) {
                return [=, this] {
                    share_out(threads, count_, [&](std::size_t begin, std::size_t end) {
                        function(bits(from_.data()) + begin, bits(target) + begin, end - begin);
                    });
                };
            },
            exact || part != role::peer ? part : role::note);
    }

    session& where_;
    std::size_t count_;
    array<From> from_;
    array<To> to_;
    std::deque<array<To>> targets_;
    std::unique_ptr<array<std::byte>> source_;
    std::unique_ptr<array<std::byte>> target_;
    std::vector<contender> all_;
    std::string implementation_;
};

template <class From, class To>
void measure_cast(session& where) {
    const std::string direction = std::string(short_name<From>()) + " to " + short_name<To>();
    for (const std::size_t count : {std::size_t{1} << 12, std::size_t{1} << 18}) {
        const std::string work = "cast in cache";
        const std::string name = direction + ", " + count_text(count);
        if (!where.wants(work, name)) continue;
        cast_case<From, To> one(where, count);
        one.add_peers();
        one.add_copies();
        const criterion peers{.work = work,
                              .against = "best of Eigen, oneDNN, hand loops",
                              .goal_mean = 1,
                              .goal_worst = 1};
        const criterion copy{.work = work, .against = "best copy", .part = role::limit};
        one.measure(work, name, {peers, copy});
    }
    const std::string work = "cast beyond cache";
    const std::string name = direction + ", " + count_text(beyond_cache);
    if (!where.wants(work, name)) return;
    cast_case<From, To> one(where, beyond_cache);
    one.add_copies();
    one.add_streams();
    one.measure(work, name,
                {{.work = work,
                  .against = "best loop of the same bytes",
                  .part = role::limit,
                  .goal_mean = 0.95,
                  .goal_worst = 0.95}});
}

}  // namespace

void measure_casts(session& where) {
    measure_cast<float, demi::float16>(where);
    measure_cast<demi::float16, float>(where);
    measure_cast<float, demi::bfloat16>(where);
    measure_cast<demi::bfloat16, float>(where);
}

}  // namespace bench
