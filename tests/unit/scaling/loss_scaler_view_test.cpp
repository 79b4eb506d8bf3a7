// SPDX-License-Identifier: MIT
#include <demi/scaling/loss_scale.hpp>
#include <demi/scaling/loss_scaler_view.hpp>

#include <limits>
#include <support/catch.hpp>

namespace {

using view_type = demi::loss_scaler_view<demi::dynamic_loss_scale>;

constexpr demi::dynamic_loss_scale rule{.initial_scale = 8, .growth_interval = 2};

view_type::record fresh_record() {
    view_type::record record;
    record.state.rule = rule.initial();
    return record;
}

demi::gradient_statistics finite_gradients(double norm) {
    demi::gradient_statistics found;
    found.sum_of_squares = norm * norm;
    found.largest_magnitude = norm;
    return found;
}

demi::gradient_statistics infinity_at(demi::element_position where) {
    demi::gradient_statistics found;
    found.infinity_count = 1;
    found.first_non_finite = where;
    found.first_kind = demi::non_finite::plus_infinity;
    return found;
}

}  // namespace

TEST_CASE(
    "A scaler's state has no padding, so that a checkpoint of it is the same bytes each time") {
    using dynamic_state = demi::loss_scaler_state<demi::dynamic_loss_scale>;
    CHECK(sizeof(dynamic_state) == 12 + 4 + 8 + 8);
    CHECK(sizeof(demi::loss_scaler_state<demi::no_loss_scale>) == 4 + 4 + 8 + 8);
}

TEST_CASE("Closing a step of finite gradients reports their unscaled norm and counts it") {
    auto record = fresh_record();
    const view_type view(rule, &record);
    view.note(finite_gradients(3));
    view.note(finite_gradients(4));
    CHECK(view.unscale_is_safe());

    const auto report = view.close(static_cast<double>(view.inverse_scale()));
    CHECK(report.applied());
    CHECK(report.gradient_norm == 5.0 / 8);
    CHECK(report.applied_steps == 1);
    CHECK(report.next_loss_scale == 8);
    CHECK(record.found.sum_of_squares == 0);
    CHECK(view.close(0.125).next_loss_scale == 16);
}

TEST_CASE("The earliest bad value of all lists is the one reported, and the scale backs off") {
    auto record = fresh_record();
    const view_type view(rule, &record);
    view.note(infinity_at({7, 1}));
    view.note(finite_gradients(1));
    view.note(infinity_at({2, 9}));
    const auto report = view.close(0.125);
    CHECK(report.reason == demi::skip_reason::non_finite_gradient);
    CHECK(report.first_non_finite == demi::element_position{2, 9});
    CHECK(report.infinity_count == 2);
    CHECK(report.loss_scale == 8);
    CHECK(report.next_loss_scale == 4);
    CHECK(report.consecutive_skips == 1);
}

TEST_CASE("A loss that is not finite skips the step and leaves the scale") {
    auto record = fresh_record();
    const view_type view(rule, &record);
    view.note_loss(true);
    view.note_loss(false);
    view.note_loss(true);
    view.note(finite_gradients(1));
    const auto report = view.close(0.125);
    CHECK(report.reason == demi::skip_reason::non_finite_loss);
    CHECK(report.next_loss_scale == 8);
    CHECK(record.loss_is_finite);
}

TEST_CASE("Gradients that leave the range of float once multiplied are refused") {
    auto record = fresh_record();
    record.state.rule.scale = 0.125f;
    const view_type view(rule, &record);
    view.note(finite_gradients(static_cast<double>(std::numeric_limits<float>::max())));
    CHECK(!view.unscale_is_safe());
    view.note_instead(finite_gradients(1));
    CHECK(view.unscale_is_safe());
}
