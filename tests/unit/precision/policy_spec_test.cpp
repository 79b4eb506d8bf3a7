// SPDX-License-Identifier: MIT
#include <demi/precision/policy_spec.hpp>

#include <string>
#include <string_view>
#include <support/catch.hpp>
#include <type_traits>

using namespace demi;

namespace {

constexpr policy_spec all(dtype format) { return {format, format, format, format}; }

struct half_with_float_gradients : mixed_float16 {
    using gradient_type = float;
};

}  // namespace

TEST_CASE("missing items follow: param is float32, compute follows param, output compute") {
    CHECK(parse_policy("p=float32,c=float16,o=float32") ==
          policy_spec{dtype::float32, dtype::float16, dtype::float32, dtype::float16});
    CHECK(parse_policy("c=bf16") == spec_of<mixed_bfloat16>());
    CHECK(parse_policy("p=bf16") == all(dtype::bfloat16));
    CHECK(parse_policy("o=f16") ==
          policy_spec{dtype::float32, dtype::float32, dtype::float16, dtype::float32});
    CHECK(parse_policy("g=f32,c=f16") == spec_of<half_with_float_gradients>());
    CHECK(parse_policy(" output = half , params = float ") ==
          policy_spec{dtype::float32, dtype::float32, dtype::float16, dtype::float32});
}

TEST_CASE("a format alone sets every role, a preset its own") {
    CHECK(parse_policy("float16") == all(dtype::float16));
    CHECK(parse_policy("double") == all(dtype::float64));
    CHECK(parse_policy("mixed_float16") == spec_of<mixed_float16>());
    CHECK(parse_policy("full_float32") == spec_of<full_float32>());
    CHECK(parse_policy("mixed_bfloat16") == spec_of<mixed_bfloat16>());
    CHECK(parse_policy("pure_bfloat16") == spec_of<pure_bfloat16>());
    CHECK(parse_policy(" mixed_float8 ") == spec_of<mixed_float8>());
    CHECK(parse_policy("tf32") == spec_of<tf32>());
    CHECK(parse_policy("c=tf32") == spec_of<tf32>());
    CHECK(spec_of<tf32>() != spec_of<full_float32>());
}

TEST_CASE("a description says which format each role has") {
    CHECK(describe<full_float32>() == "p=float32,c=float32,o=float32");
    CHECK(describe<mixed_float16>() == "p=float32,c=float16,o=float16");
    CHECK(describe<pure_bfloat16>() == "p=bfloat16,c=bfloat16,o=bfloat16");
    CHECK(describe<mixed_float8>() == "p=float32,c=float8_e4m3,o=bfloat16,g=float8_e5m2");
    CHECK(describe<tf32>() == "p=float32,c=tf32,o=float32");
    CHECK(describe<half_with_float_gradients>() == "p=float32,c=float16,o=float16,g=float32");
}

TEST_CASE("every description parses back to what it describes") {
    int bad = 0;
    const dtype formats[] = {dtype::float32,  dtype::float64,     dtype::float16,
                             dtype::bfloat16, dtype::float8_e4m3, dtype::float8_e5m2};
    for (const dtype param : formats) {
        for (const dtype compute : formats) {
            for (const dtype output : formats) {
                for (const dtype gradient : formats) {
                    const policy_spec spec{param, compute, output, gradient};
                    bad += parse_policy(describe(spec)) != spec;
                }
            }
        }
    }
    CHECK(bad == 0);
    CHECK(parse_policy(describe<tf32>()) == spec_of<tf32>());
}

TEST_CASE("a specification finds the type of its policy") {
    const auto name = [](std::string_view text) {
        return visit_policy(parse_policy(text), []<class P>() { return describe<P>(); });
    };
    for (const std::string_view text :
         {"full_float32", "mixed_float16", "mixed_bfloat16", "pure_bfloat16", "mixed_float8",
          "tf32", "p=float32,c=float16,o=float32", "p=float32,c=bfloat16,o=float32"}) {
        CHECK(parse_policy(name(text)) == parse_policy(text));
    }
    // Only the type knows that pure bfloat16 is rounded stochastically.
    CHECK(visit_policy(parse_policy("bfloat16"), []<class P>() {
        return std::is_same_v<typename policy_traits<P>::param_rounding, stochastic>;
    }));
}

TEST_CASE("the policies to choose from can be one's own") {
    using mine = policy_list<full_float32, half_with_float_gradients>;
    const bool found = visit_policy<mine>(parse_policy("c=float16,g=float32"), []<class P>() {
        return std::is_same_v<P, half_with_float_gradients>;
    });
    CHECK(found);
}

#if DEMI_EXCEPTIONS
namespace {

template <class Function>
std::string message_of(Function fn) {
    try {
        fn();
    } catch (const invalid_argument& failure) {
        return failure.what();
    }
    return "";
}

std::string complaint(std::string_view text) {
    return message_of([&] { parse_policy(text); });
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a text that is no policy is refused with what is wrong and what is expected") {
    CHECK(contains(complaint(""), "the text is empty, expected full_float32"));
    CHECK(contains(complaint("   "), "the text is empty"));
    CHECK(
        contains(complaint("mixed_fp16"), "unknown policy \"mixed_fp16\", expected full_float32"));
    CHECK(contains(complaint("q=float16"), "unknown key \"q\", expected p (param)"));
    CHECK(contains(complaint("=float16"), "unknown key \"\""));
    CHECK(contains(complaint("c=fp16"), "unknown format \"fp16\", expected one of float32"));
    CHECK(contains(complaint("p=tf32"), "unknown format \"tf32\""));
    CHECK(contains(complaint("c="), "unknown format \"\""));
    CHECK(contains(complaint("c=float16,c=float32"), "key \"c\" is given twice"));
    CHECK(contains(complaint("c=float16,compute=float16"), "key \"compute\" is given twice"));
    CHECK(contains(complaint("p=float32,"), "\"\" has no \"=\""));
    CHECK(contains(complaint("float16,c=float16"), "\"float16\" has no \"=\""));
}

TEST_CASE("a specification without a policy type names those that there are") {
    const auto text = message_of([] {
        visit_policy<policy_list<full_float32, mixed_float16>>(parse_policy("float64"),
                                                               []<class P>() {});
    });
    CHECK(contains(text, "no policy has p=float64,c=float64,o=float64"));
    CHECK(contains(text, "p=float32,c=float32,o=float32 or p=float32,c=float16,o=float16"));
}
#endif
