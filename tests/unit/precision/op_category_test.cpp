// SPDX-License-Identifier: MIT
#include <demi/precision/op_category.hpp>

#include <support/catch.hpp>
#include <type_traits>

using namespace demi;

namespace {

template <class Op, class... Arguments>
using in_half = precision_for<mixed_float16, Op, Arguments...>;

template <class T, class U>
constexpr bool same = std::is_same_v<T, U>;

struct fused_gelu_matmul : op::low {};

struct double_policy {
    using compute_type = double;
};

}  // namespace

TEST_CASE("products run in the compute format") {
    static_assert(same<in_half<op::matmul>, float16>);
    static_assert(same<in_half<op::convolution>, float16>);
    static_assert(same<in_half<op::attention>, float16>);
    static_assert(same<in_half<fused_gelu_matmul>, float16>);
    static_assert(same<precision_for<mixed_bfloat16, op::linear>, bfloat16>);
    static_assert(same<precision_for<full_float32, op::matmul>, float>);
    SUCCEED();
}

TEST_CASE("operations with a large range or a long sum run in float") {
    static_assert(same<in_half<op::softmax>, float>);
    static_assert(same<in_half<op::layer_norm>, float>);
    static_assert(same<in_half<op::exp>, float>);
    static_assert(same<in_half<op::loss>, float>);
    static_assert(same<in_half<op::binary_cross_entropy_with_logits>, float>);
    static_assert(same<in_half<op::sum>, float>);
    static_assert(same<in_half<op::norm>, float>);
    static_assert(same<precision_for<double_policy, op::softmax>, double>);
    SUCCEED();
}

TEST_CASE("operations on several tensors promote to the widest") {
    static_assert(same<in_half<op::add, float16, float16>, float16>);
    static_assert(same<in_half<op::add, float16, float>, float>);
    static_assert(same<in_half<op::cross, float, float16>, float>);
    static_assert(same<in_half<op::concatenate, float16, float16, float>, float>);
    static_assert(same<in_half<op::add, float16, bfloat16>, float>);
    static_assert(same<in_half<op::add, float8_e4m3, float8_e5m2>, float>);
    static_assert(same<in_half<op::add, float8_e5m2, float16>, float16>);
    static_assert(same<in_half<op::add, float16, double>, double>);
    static_assert(same<in_half<op::add, const float16>, float16>);
    SUCCEED();
}

TEST_CASE("what is refused in a narrow format is allowed in float") {
    static_assert(op::binary_cross_entropy::category == op_category::refuse);
    static_assert(same<precision_for<full_float32, op::binary_cross_entropy>, float>);
    static_assert(same<precision_for<double_policy, op::binary_cross_entropy>, double>);
    static_assert(!operation<float>);
    SUCCEED();
}
