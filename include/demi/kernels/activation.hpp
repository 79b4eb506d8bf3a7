// SPDX-License-Identifier: MIT
/// Activation functions and their derivatives, for any number type: float, packs of lanes, device.
#pragma once

#include <demi/core/backend.hpp>
#include <demi/core/real.hpp>

#include <cmath>
#include <concepts>

namespace demi::inline DEMI_ABI {

namespace detail {

/// A value brought into [-limit, limit]; NaN stays NaN.
template <class Real>
DEMI_HD Real clamp_magnitude(Real value, float limit) {
    return max(static_cast<Real>(-limit), min(static_cast<Real>(limit), value));
}

}  // namespace detail

/// The hyperbolic tangent, within 6 ulp in float and never outside [-1, 1].
///
/// In float it is x P(x^2) / Q(x^2), with P and Q of degree 4 fitted for the least largest relative
/// error (2.2e-8) over [0, 9.02], where float reaches 1.
template <class Real>
DEMI_HD Real tanh(Real value) {
    if constexpr (std::same_as<Real, double>) {
        return ::tanh(value);
    } else {
        const Real x = detail::clamp_magnitude(value, 9.02f);
        const Real z = x * x;
        const Real p =
            (((static_cast<Real>(0x1.cbe280p-27f) * z + static_cast<Real>(0x1.5a3694p-16f)) * z +
              static_cast<Real>(0x1.ca6b66p-9f)) *
                 z +
             static_cast<Real>(0x1.1213dap-3f)) *
                z +
            static_cast<Real>(1.0f);
        const Real q =
            (((static_cast<Real>(0x1.a23d0ep-21f) * z + static_cast<Real>(0x1.58d3b8p-12f)) * z +
              static_cast<Real>(0x1.a816f8p-6f)) *
                 z +
             static_cast<Real>(0x1.de5f3ap-2f)) *
                z +
            static_cast<Real>(1.0f);
        return detail::clamp_magnitude(x * (p / q), 1.0f);
    }
}

/// max(value, 0); NaN stays NaN. A function of one value, and an epilogue.
struct relu {
    template <class Real>
    DEMI_HD Real operator()(Real value, matrix_position = {}) const {
        return max(static_cast<Real>(0.0f), value);
    }

    /// 0 up to and including 0, 1 above; NaN for NaN, so that it shows.
    template <class Real>
    DEMI_HD static Real derivative(Real value) {
        return select(value <= static_cast<Real>(0.0f), static_cast<Real>(0.0f),
                      select(value > static_cast<Real>(0.0f), static_cast<Real>(1.0f), value));
    }
};

/// The Gaussian error linear unit in its tanh form, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
/// A function of one value, and an epilogue. In float it is within 4e-7 max(1, |x|), and its
/// derivative within 5e-6.
struct gelu {
    template <class Real>
    DEMI_HD Real operator()(Real value, matrix_position = {}) const {
        const Real x = max(static_cast<Real>(-saturation), value);
        return static_cast<Real>(0.5f) * x * (static_cast<Real>(1.0f) + inner_tanh(x));
    }

    template <class Real>
    DEMI_HD static Real derivative(Real value) {
        const Real x = detail::clamp_magnitude(value, saturation);
        const Real t = inner_tanh(x);
        const Real slope = static_cast<Real>(root) *
                           (static_cast<Real>(1.0f) + static_cast<Real>(3.0f * cubic) * x * x);
        return static_cast<Real>(0.5f) * (static_cast<Real>(1.0f) + t) +
               static_cast<Real>(0.5f) * x * (static_cast<Real>(1.0f) - t * t) * slope;
    }

private:
    static constexpr float root = 0.7978845608f;
    static constexpr float cubic = 0.044715f;
    /// Further out the function is 0 or x to the last bit; stopping here keeps infinities from
    /// meeting zeros.
    static constexpr float saturation = 12.0f;

    template <class Real>
    DEMI_HD static Real inner_tanh(Real x) {
        return demi::tanh(static_cast<Real>(root) * x *
                          (static_cast<Real>(1.0f) + static_cast<Real>(cubic) * x * x));
    }
};

}  // namespace demi::inline DEMI_ABI
