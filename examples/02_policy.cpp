// SPDX-License-Identifier: MIT
// A policy names the format of each role in training; what it does not name is filled in.
#include <demi/demi.hpp>

#include <iostream>

// Changing a preset is inheritance: float16 network, but gradients in float.
struct wide_gradients : demi::mixed_float16 {
    using gradient_type = float;
};

template <class Policy>
void show(const char* name) {
    using traits = demi::policy_traits<Policy>;
    const auto format = []<class T>() { return demi::format_traits<T>::name; };
    std::cout << name << ": weights " << format.template operator()<typename traits::param_type>()
              << ", network " << format.template operator()<typename traits::compute_type>()
              << ", gradients " << format.template operator()<typename traits::gradient_type>()
              << ", softmax in "
              << format.template operator()<demi::precision_for<Policy, demi::op::softmax>>()
              << "\n    loss scale " << (traits::needs_loss_scale ? "needed" : "not needed") << ", "
              << traits::training_bytes_per_parameter(demi::adamw::slots)
              << " bytes per parameter with AdamW\n";
}

int main() {
    show<demi::full_float32>("full_float32");
    show<demi::mixed_float16>("mixed_float16");
    show<wide_gradients>("wide_gradients");
    show<demi::mixed_bfloat16>("mixed_bfloat16");
    show<demi::pure_bfloat16>("pure_bfloat16");
}
