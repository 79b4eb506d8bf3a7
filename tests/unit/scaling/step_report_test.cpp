// SPDX-License-Identifier: MIT
/// A report says in one line what happened to a step.
#include <demi/scaling/step_report.hpp>

#include <sstream>
#include <string>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <type_traits>

namespace {

demi::step_report skipped(demi::skip_reason reason) {
    demi::step_report report;
    report.reason = reason;
    report.loss_scale = 65536;
    report.next_loss_scale = 32768;
    return report;
}

}  // namespace

static_assert(std::is_trivially_copyable_v<demi::step_report>);

TEST_CASE("a step is applied unless there is a reason against it") {
    CHECK(demi::step_report{}.applied());
    CHECK_FALSE(skipped(demi::skip_reason::non_finite_gradient).applied());
    CHECK_FALSE(skipped(demi::skip_reason::gradient_overflow).applied());
    CHECK_FALSE(skipped(demi::skip_reason::non_finite_loss).applied());
}

TEST_CASE("a step skipped for a gradient names the tensor, the index, the kind and the scales") {
    auto report = skipped(demi::skip_reason::non_finite_gradient);
    report.first_non_finite = {3, 17};
    report.first_kind = demi::non_finite::plus_infinity;
    CHECK(
        demi::describe(report) ==
        "skipped: gradient tensor 3, element 17 is +infinity at loss scale 65536; next loss scale "
        "32768");
    report.first_kind = demi::non_finite::nan;
    CHECK(mentions(demi::describe(report), {"skipped", "NaN"}));
    report.first_kind = demi::non_finite::minus_infinity;
    CHECK(mentions(demi::describe(report), {"skipped", "-infinity"}));
}

TEST_CASE("the other reasons are told apart") {
    CHECK(mentions(demi::describe(skipped(demi::skip_reason::gradient_overflow)),
                   {"skipped", "overflow", "65536", "32768"}));
    auto report = skipped(demi::skip_reason::non_finite_loss);
    report.next_loss_scale = report.loss_scale;
    CHECK(mentions(demi::describe(report), {"skipped", "loss is not finite", "65536"}));
    CHECK_FALSE(mentions(demi::describe(report), {"next"}));
}

TEST_CASE("an applied step shows its norm, and the next scale only when it moves") {
    demi::step_report report;
    report.gradient_norm = 0.25;
    report.loss_scale = 8;
    report.next_loss_scale = 8;
    CHECK(demi::describe(report) == "applied: gradient norm 0.25 at loss scale 8");
    report.next_loss_scale = 16;
    CHECK(mentions(demi::describe(report), {"applied", "next loss scale 16"}));
}

TEST_CASE("a report prints as its description") {
    const auto report = skipped(demi::skip_reason::gradient_overflow);
    std::ostringstream text;
    text << report;
    CHECK(text.str() == demi::describe(report));
}
