// SPDX-License-Identifier: MIT
/// The two passes of a training step: check and norm, and the update with its 16-bit copy.
#include "arrays.hpp"
#include "limits.hpp"
#include "plain_loops.hpp"
#include "session.hpp"
#include <demi/kernels/cast.hpp>
#include <demi/kernels/gradient_statistics.hpp>
#include <demi/precision/bfloat16.hpp>
#include <demi/precision/float16.hpp>
#include <demi/training/adamw.hpp>
#include <demi/training/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

namespace bench {

namespace {

constexpr float rate = 1e-6f;  // small: weights stay what they are, however often they are updated

template <class T>
std::string format_name() {
    return std::is_same_v<T, float> ? "f32" : std::is_same_v<T, demi::float16> ? "f16" : "bf16";
}

std::string count_text(std::size_t count) {
    return count >= std::size_t{1} << 20 ? std::to_string(count >> 20) + " Mi"
                                         : std::to_string(count >> 10) + " Ki";
}

template <class T>
void fill(session& where, array<T>& values, std::uint32_t seed) {
    array<float> wide(values.size());
    fill_uniform(wide.span(), seed);
    demi::cast(where.backend(), std::as_const(wide).span(), values.span());
}

/// Threads that are worth waking for a floor of so many elements.
std::size_t useful_threads(const session& where, std::size_t count) {
    return count < std::size_t{1} << 17 ? 1 : where.threads();
}

/// Within the second cache a pass is bound by instructions as well, and may take 1.4 of the floor.
criterion of_floor(const std::string& work, bool in_cache) {
    const double goal = in_cache ? 0.71 : 0.9;
    return {.work = work + (in_cache ? " in L2" : ""),
            .against = "memory floor",
            .part = role::limit,
            .goal_mean = goal,
            .goal_worst = goal};
}

criterion of_plain_loops(const std::string& work) {
    return {.work = work, .against = "plain loops", .goal_mean = 5};
}

template <class T>
void measure_check(session& where, std::size_t count, bool in_cache) {
    const std::string work = "check + norm";
    const std::string name = format_name<T>() + ", " + count_text(count);
    if (!where.wants(work, name)) return;
    array<T> gradients(count);
    fill(where, gradients, 1);
    const double bytes = static_cast<double>(count * sizeof(T));
    std::vector<contender> all{{"demi", role::ours, bytes, [&] {
                                    static_cast<void>(demi::measure_gradients(
                                        where.backend(), std::as_const(gradients).span()));
                                }}};
    for (contender& floor :
         limits::reads(gradients.data(), count * sizeof(T), useful_threads(where, count))) {
        all.push_back(std::move(floor));
    }
    if constexpr (std::is_same_v<T, float>) {
        all.push_back({"plain loops", role::peer, bytes, [&] {
                           share_out(where.threads(), count,
                                     [&](std::size_t begin, std::size_t end) {
                                         static_cast<void>(plain::check_and_norm(
                                             gradients.data() + begin, end - begin, 1.0f));
                                     });
                       }});
        const auto prefix = std::min(count, std::size_t{1} << 16);
        const auto seen =
            demi::measure_gradients(where.backend(), std::as_const(gradients).span().first(prefix));
        const double expected = std::sqrt(seen.sum_of_squares);
        const double found =
            static_cast<double>(plain::check_and_norm(gradients.data(), prefix, 1.0f));
        require(std::abs(found - expected) <= 1e-3 * expected, "plain loops", "norm");
        where.measure({.work = work, .name = name, .unit = "GB/s"}, all,
                      {of_floor(work, in_cache), of_plain_loops(work)});
    } else {
        where.measure({.work = work, .name = name, .unit = "GB/s"}, all,
                      {of_floor(work, in_cache)});
    }
}

/// Parameters with everything that a step of AdamW reads and writes.
template <class Gradient>
struct parameters {
    explicit parameters(session& where, std::size_t count)
        : gradients(count), weights(count), means(count), squares(count), copy(count) {
        fill(where, gradients, 1);
        fill_uniform(weights.span(), 2);
    }

    limits::update_streams streams() {
        return {gradients.data(), sizeof(Gradient), weights.data(), means.data(),
                squares.data(),   copy.data(),      weights.size()};
    }

    array<Gradient> gradients;
    array<float> weights;
    array<float> means;
    array<float> squares;
    array<demi::float16> copy;
};

using fused_adamw = demi::detail::fused_update_with_copy<demi::adamw::update>;

fused_adamw first_update() {
    return {{demi::adamw{.learning_rate = rate}.at_step(1), 1, 1, 0x1p100f, true}};
}

/// What the optimizer runs after its decision.
template <class Gradient>
void update(demi::host_backend& backend, parameters<Gradient>& values) {
    const demi::tensor_list<const Gradient> gradients(std::as_const(values.gradients));
    const demi::tensor_list<demi::float16> copy(values.copy);
    const demi::tensor_list<float> weights(values.weights);
    const demi::tensor_list<float> means(values.means);
    const demi::tensor_list<float> squares(values.squares);
    demi::transform(backend, first_update(), demi::in(gradients), demi::out(copy),
                    demi::inout(weights), demi::inout(means), demi::inout(squares));
}

void update_plainly(parameters<float>& values, std::size_t threads) {
    const demi::adamw::update factors = first_update().update;
    const plain::adamw_factors same{.beta1 = factors.beta1,
                                    .beta2 = factors.beta2,
                                    .epsilon = factors.epsilon,
                                    .step_size = factors.step_size,
                                    .root_correction = factors.root_correction,
                                    .weight_factor = factors.weight_factor};
    const plain::adamw_arrays arrays{values.gradients.data(), values.weights.data(),
                                     values.means.data(), values.squares.data(),
                                     reinterpret_cast<std::uint16_t*>(values.copy.data())};
    share_out(threads, values.weights.size(),
              [&](std::size_t begin, std::size_t end) { plain::adamw(arrays, begin, end, same); });
}

void check_plain_update(session& where) {
    parameters<float> fused(where, 4096);
    parameters<float> plain(where, 4096);
    update(where.backend(), fused);
    update_plainly(plain, 1);
    for (std::size_t i = 0; i < fused.weights.size(); ++i) {
        require(std::abs(fused.weights[i] - plain.weights[i]) <= 1e-6f, "plain loops", "weights");
        require(std::abs(fused.squares[i] - plain.squares[i]) <= 1e-9f, "plain loops", "squares");
        const float copies = static_cast<float>(fused.copy[i]) - static_cast<float>(plain.copy[i]);
        require(std::abs(copies) <= 1e-3f, "plain loops", "copy");
    }
}

template <class Gradient>
void measure_update(session& where, std::size_t count, bool in_cache) {
    const std::string work = "AdamW + f16 copy";
    const std::string name = format_name<Gradient>() + " gradients, " + count_text(count);
    if (!where.wants(work, name)) return;
    parameters<Gradient> values(where, count);
    const limits::update_streams streams = values.streams();
    std::vector<contender> all{
        {"demi", role::ours, streams.bytes(), [&] { update(where.backend(), values); }}};
    for (contender& floor : limits::updates(streams, useful_threads(where, count))) {
        all.push_back(std::move(floor));
    }
    std::vector<criterion> questions{of_floor(work, in_cache)};
    if constexpr (std::is_same_v<Gradient, float>) {
        check_plain_update(where);
        all.push_back({"plain loops", role::peer, streams.bytes(),
                       [&] { update_plainly(values, where.threads()); }});
        questions.push_back(of_plain_loops(work));
    }
    where.measure({.work = work, .name = name, .unit = "GB/s"}, all, questions);
}

/// A step as a user calls it: check, decide, update.
void measure_step(session& where, std::size_t count) {
    const std::string work = "whole optimizer step";
    const std::string name = "f16 gradients, " + count_text(count);
    if (!where.wants(work, name)) return;
    parameters<demi::float16> values(where, count);
    demi::optimizer<demi::adamw, demi::mixed_float16> optimizer(
        where.backend(), {.learning_rate = rate}, values.weights, values.copy);
    demi::loss_scaler scaler(where.backend(), demi::no_loss_scale{});
    const limits::update_streams streams = values.streams();
    const std::size_t gradient_bytes = count * sizeof(demi::float16);
    const double bytes = streams.bytes() + static_cast<double>(gradient_bytes);
    std::vector<contender> all{{"demi", role::ours, bytes, [&] {
                                    static_cast<void>(optimizer.step(values.gradients, scaler));
                                }}};
    const auto reads = limits::reads(values.gradients.data(), gradient_bytes, where.threads());
    const auto updates = limits::updates(streams, where.threads());
    for (std::size_t i = 0; i < reads.size(); ++i) {
        all.push_back({"read, then " + updates[i].name, role::limit, bytes,
                       [read = reads[i].run, update = updates[i].run] {
                           read();
                           update();
                       }});
    }
    where.measure({.work = work, .name = name, .unit = "GB/s"}, all, {of_floor(work, false)});
}

}  // namespace

void measure_passes(session& where) {
    constexpr std::size_t mi = std::size_t{1} << 20;
    constexpr std::size_t ki = std::size_t{1} << 10;
    const auto check = [&](std::size_t count, bool in_cache) {
        measure_check<float>(where, count, in_cache);
        measure_check<demi::float16>(where, count, in_cache);
        measure_check<demi::bfloat16>(where, count, in_cache);
    };
    check(64 * ki, true);
    check(2 * mi, false);
    check(where.quick() ? 32 * mi : 64 * mi, false);
    const auto update = [&](std::size_t count, bool in_cache) {
        measure_update<float>(where, count, in_cache);
        measure_update<demi::float16>(where, count, in_cache);
    };
    update(16 * ki, true);
    update(512 * ki, false);
    update(where.quick() ? 8 * mi : 32 * mi, false);
    measure_step(where, where.quick() ? 8 * mi : 32 * mi);
}

}  // namespace bench
