// SPDX-License-Identifier: MIT
#include <demi/precision/policy.hpp>

#include <support/catch.hpp>
#include <type_traits>

using namespace demi;

namespace {

template <class T, class U>
constexpr bool same = std::is_same_v<T, U>;

struct only_compute {
    using compute_type = float16;
};
struct only_gradient {
    using gradient_type = bfloat16;
};
struct half_gradients {
    using gradient_type = float16;
};
struct wide {
    using compute_type = double;
};
struct float_gradients : mixed_float16 {
    using gradient_type = float;
};
struct narrow_slots : mixed_bfloat16 {
    using state_type = bfloat16;
    using reduce_type = bfloat16;
    using param_type = bfloat16;
    using param_rounding = stochastic;
};
struct no_format {};
struct not_a_number {
    using compute_type = int;
};
struct no_rounding : mixed_float16 {
    using param_rounding = int;
};

}  // namespace

TEST_CASE("a policy may name as little as its compute format") {
    using traits = policy_traits<only_compute>;
    static_assert(precision_policy<only_compute>);
    static_assert(same<traits::param_type, float>);
    static_assert(same<traits::compute_type, float16>);
    static_assert(same<traits::accumulate_type, float>);
    static_assert(same<traits::output_type, float16>);
    static_assert(same<traits::gradient_type, float16>);
    static_assert(same<traits::reduce_type, float>);
    static_assert(same<traits::state_type, float>);
    static_assert(same<traits::param_rounding, nearest_even>);
    static_assert(traits::matmul_mantissa_bits == 10);

    static_assert(same<policy_traits<only_gradient>::compute_type, float>);
    static_assert(same<policy_traits<only_gradient>::gradient_type, bfloat16>);
    SUCCEED();
}

TEST_CASE("a double policy is double in every role that is float otherwise") {
    using traits = policy_traits<wide>;
    static_assert(same<traits::param_type, double> && same<traits::accumulate_type, double>);
    static_assert(same<traits::reduce_type, double> && same<traits::state_type, double>);
    CHECK_FALSE(traits::has_master_weights);
    CHECK_FALSE(traits::needs_loss_scale);
    CHECK(traits::training_bytes_per_parameter(2) == 32);
}

TEST_CASE("what is not a policy is told apart") {
    static_assert(!precision_policy<no_format>);
    static_assert(!precision_policy<not_a_number>);
    static_assert(!precision_policy<no_rounding>);
    static_assert(!precision_policy<float>);
    SUCCEED();
}

TEST_CASE("inheritance overrides one role and keeps the others") {
    using traits = policy_traits<float_gradients>;
    static_assert(precision_policy<float_gradients>);
    static_assert(same<traits::gradient_type, float>);
    static_assert(same<traits::compute_type, float16> && same<traits::output_type, float16>);
    // Activations are float16 still.
    CHECK(traits::needs_loss_scale);
    CHECK(traits::training_bytes_per_parameter(2) == 18);

    using narrow = policy_traits<narrow_slots>;
    static_assert(same<narrow::param_rounding, stochastic>);
    CHECK(narrow::training_bytes_per_parameter(2) == 8);
}

TEST_CASE("a loss scale is needed where exponents are narrower than those of float") {
    CHECK_FALSE(policy_traits<full_float32>::needs_loss_scale);
    CHECK(policy_traits<mixed_float16>::needs_loss_scale);
    CHECK_FALSE(policy_traits<mixed_bfloat16>::needs_loss_scale);
    CHECK_FALSE(policy_traits<pure_bfloat16>::needs_loss_scale);
    CHECK(policy_traits<mixed_float8>::needs_loss_scale);
    CHECK(policy_traits<half_gradients>::needs_loss_scale);
    CHECK_FALSE(policy_traits<tf32>::needs_loss_scale);
}

TEST_CASE("master weights exist where weights and network differ in format") {
    CHECK_FALSE(policy_traits<full_float32>::has_master_weights);
    CHECK(policy_traits<mixed_float16>::has_master_weights);
    CHECK(policy_traits<mixed_bfloat16>::has_master_weights);
    CHECK_FALSE(policy_traits<pure_bfloat16>::has_master_weights);
    CHECK(policy_traits<mixed_float8>::has_master_weights);
    CHECK_FALSE(policy_traits<tf32>::has_master_weights);
}

TEST_CASE("bytes for each parameter are the sum of its copies") {
    CHECK(policy_traits<full_float32>::training_bytes_per_parameter(2) == 16);
    CHECK(policy_traits<mixed_float16>::training_bytes_per_parameter(2) == 16);
    CHECK(policy_traits<mixed_float16>::training_bytes_per_parameter(1) == 12);
    CHECK(policy_traits<mixed_bfloat16>::training_bytes_per_parameter(0) == 8);
    CHECK(policy_traits<pure_bfloat16>::training_bytes_per_parameter(2) == 12);
    CHECK(policy_traits<mixed_float8>::training_bytes_per_parameter(2) == 14);
}

TEST_CASE("tf32 keeps float in memory and ten mantissa bits in products") {
    static_assert(same<policy_traits<tf32>::compute_type, float>);
    CHECK(policy_traits<tf32>::matmul_mantissa_bits == 10);
    CHECK(policy_traits<full_float32>::matmul_mantissa_bits == 23);
    CHECK(policy_traits<mixed_bfloat16>::matmul_mantissa_bits == 7);
}
