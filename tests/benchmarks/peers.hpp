// SPDX-License-Identifier: MIT
/// Other software for the same work, each piece behind a function that gives a task, or an empty
/// one where the library is missing or cannot do it. No header of a peer is seen outside its file.
#pragma once

#include "contest.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

/// c (m x n) = a (m x k) * b (k x n), all row-major; a transposed operand is stored the other way
/// round.
struct product {
    std::size_t m = 0;
    std::size_t n = 0;
    std::size_t k = 0;
    bool transpose_a = false;
    bool transpose_b = false;

    double flops() const {
        return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    }
};

enum class number { float32, float16, bfloat16 };

namespace openblas {
/// The version and the kernels that it chose; empty without the library.
std::string describe();
void set_threads(std::size_t count);
task sgemm(const product& shape, const float* a, const float* b, float* c);
}  // namespace openblas

namespace onednn {
std::string describe();
void set_threads(std::size_t count);
/// Both factors are float, or both are bfloat16; `implementation` gets the name of what runs.
/// Threads are those set when it is made.
task matmul(const product& shape, number format, const void* a, const void* b, float* c,
            std::string& implementation);
/// The same with `b` brought into the library's own layout beforehand.
task matmul_packed(const product& shape, number format, const void* a, const void* b, float* c,
                   std::string& implementation);
task reorder(number from_format, const void* from, number to_format, void* to, std::size_t count,
             std::string& implementation);
}  // namespace onednn

namespace eigen {
std::string describe();
void set_threads(std::size_t count);
task sgemm(const product& shape, const float* a, const float* b, float* c);
/// From float to a 16-bit format or back.
task cast(number from_format, const void* from, number to_format, void* to, std::size_t count);
}  // namespace eigen

}  // namespace bench
