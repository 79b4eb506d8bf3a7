// SPDX-License-Identifier: MIT
#include <demi/precision/dtype.hpp>

#include <string>
#include <support/catch.hpp>
#include <type_traits>

using namespace demi;

TEST_CASE("a dtype knows its name, its size and its type") {
    static_assert(dtype_of<float> == dtype::float32 && dtype_of<double> == dtype::float64);
    static_assert(dtype_of<const float16> == dtype::float16);
    static_assert(dtype_of<float8_e5m2> == dtype::float8_e5m2);
    static_assert(bytes_of(dtype::float8_e4m3) == 1 && bytes_of(dtype::bfloat16) == 2);
    static_assert(bytes_of(dtype::float32) == 4 && bytes_of(dtype::float64) == 8);
    static_assert(name_of(dtype::float8_e4m3) == "float8_e4m3");
    for (const dtype format : {dtype::float32, dtype::float64, dtype::float16, dtype::bfloat16,
                               dtype::float8_e4m3, dtype::float8_e5m2}) {
        CHECK(parse_dtype(name_of(format)) == format);
        CHECK(visit_dtype(format, []<class T>() { return dtype_of<T>; }) == format);
    }
}

TEST_CASE("the numbers of the formats are those of old checkpoints") {
    CHECK(static_cast<int>(dtype::float32) == 0);
    CHECK(static_cast<int>(dtype::float64) == 1);
    CHECK(static_cast<int>(dtype::float16) == 2);
    CHECK(static_cast<int>(dtype::bfloat16) == 3);
    CHECK(static_cast<int>(dtype::float8_e4m3) == 4);
    CHECK(static_cast<int>(dtype::float8_e5m2) == 5);
}

TEST_CASE("formats have the short names that people use") {
    CHECK(parse_dtype("f16") == dtype::float16);
    CHECK(parse_dtype("half") == dtype::float16);
    CHECK(parse_dtype("bf16") == dtype::bfloat16);
    CHECK(parse_dtype("f32") == dtype::float32);
    CHECK(parse_dtype("float") == dtype::float32);
    CHECK(parse_dtype("double") == dtype::float64);
    CHECK(parse_dtype("e4m3") == dtype::float8_e4m3);
    CHECK_FALSE(find_dtype("Float16").has_value());
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

}  // namespace

TEST_CASE("an unknown format is named, with what is accepted") {
    const auto text = message_of([] { parse_dtype("fp16"); });
    CHECK(text.find("unknown format \"fp16\"") != std::string::npos);
    CHECK(text.find("float16, f16, half, bfloat16") != std::string::npos);
    CHECK(message_of([] { parse_dtype(""); }).find("\"\"") != std::string::npos);
}

TEST_CASE("a number that is no dtype is refused") {
    const auto text = message_of([] { name_of(static_cast<dtype>(9)); });
    CHECK(text.find("dtype number 9, expected 0 to 5") != std::string::npos);
}
#endif
