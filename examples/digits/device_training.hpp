// SPDX-License-Identifier: MIT
/// The training on a GPU, compiled by nvcc in device_training.cu where there is one.
#pragma once

#include "../nn/digits.hpp"
#include "options.hpp"
#include "results.hpp"
#include "terminal.hpp"

#include <string>

namespace digits_demo {

#if defined(DEMI_EXAMPLES_WITH_CUDA)
policy_result compare_on_device(const std::string& name, const nn::digits_split& digits,
                                const options& chosen, progress_bar& progress);
#else
inline policy_result compare_on_device(const std::string&, const nn::digits_split&, const options&,
                                       progress_bar&) {
    throw bad_usage("--device of 'cuda', expected host: this program was built without CUDA");
}
#endif

}  // namespace digits_demo
