// SPDX-License-Identifier: MIT
/// The factor and the bound of each kind of clipping.
#include <demi/training/clip.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <support/catch.hpp>
#include <support/message_of.hpp>

namespace {

constexpr float largest = std::numeric_limits<float>::max();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

struct clip_without_limit {
    void validate() const {}
    float factor(double) const { return 1.0f; }
};

}  // namespace

static_assert(demi::gradient_clip<demi::no_clip>);
static_assert(demi::gradient_clip<demi::clip_by_global_norm>);
static_assert(demi::gradient_clip<demi::clip_by_value>);
static_assert(!demi::gradient_clip<clip_without_limit>);
static_assert(!demi::gradient_clip<float>);

TEST_CASE("without clipping gradients of any norm keep their value") {
    const demi::no_clip clip;
    clip.validate();
    CHECK(clip.factor(0) == 1.0f);
    CHECK(clip.factor(1e300) == 1.0f);
    CHECK(clip.limit() == largest);
}

TEST_CASE("a norm within the bound is left alone, the bound itself included") {
    const demi::clip_by_global_norm clip{2.0f};
    CHECK(clip.factor(0) == 1.0f);
    CHECK(clip.factor(1.9) == 1.0f);
    CHECK(clip.factor(2.0) == 1.0f);
    CHECK(clip.factor(4.0) == 0.5f);
    CHECK(clip.limit() == largest);
}

TEST_CASE("the clipped norm is the bound, up to one rounding of the factor") {
    std::mt19937_64 random(1);
    std::size_t wrong = 0;
    for (int i = 0; i < 5000; ++i) {
        const float bound = std::ldexp(1.0f + static_cast<float>(random() % 1000) / 1000,
                                       static_cast<int>(random() % 20) - 10);
        const double norm =
            static_cast<double>(bound) * (1 + static_cast<double>(random() % 100000) * 0.37);
        const double clipped =
            static_cast<double>(demi::clip_by_global_norm{bound}.factor(norm)) * norm;
        wrong += std::fabs(clipped / static_cast<double>(bound) - 1) > 0x1p-23;
    }
    CHECK(wrong == 0);
}

TEST_CASE("a finite gradient far beyond the bound is clipped, not lost") {
    CHECK(demi::clip_by_global_norm{1.0f}.factor(300) * 300.0f == 1.0f);
    CHECK(demi::clip_by_global_norm{1.0f}.factor(1e30) > 0);
}

TEST_CASE("clipping by value bounds each gradient and leaves the norm out of it") {
    const demi::clip_by_value clip{0.5f};
    CHECK(clip.factor(1e30) == 1.0f);
    CHECK(clip.limit() == 0.5f);
}

TEST_CASE("a bound that is not a finite number above 0 is refused by name and value") {
    const auto refused = [](const auto& clip) {
        return message_of<demi::invalid_argument>([&] { clip.validate(); });
    };
    CHECK(mentions(refused(demi::clip_by_global_norm{0.0f}), {"max_norm", "of 0,", "above 0"}));
    CHECK(mentions(refused(demi::clip_by_global_norm{-1.5f}), {"max_norm", "-1.5"}));
    CHECK(mentions(refused(demi::clip_by_global_norm{infinity}), {"max_norm", "inf"}));
    CHECK(mentions(refused(demi::clip_by_global_norm{not_a_number}), {"max_norm", "nan"}));
    CHECK(mentions(refused(demi::clip_by_value{0.0f}), {"max_value", "of 0,", "above 0"}));
    CHECK(mentions(refused(demi::clip_by_value{-infinity}), {"max_value", "-inf"}));
    CHECK(mentions(refused(demi::clip_by_value{not_a_number}), {"max_value", "nan"}));
    CHECK(refused(demi::clip_by_global_norm{1e-30f}).empty());
    CHECK(refused(demi::clip_by_value{largest}).empty());
}
