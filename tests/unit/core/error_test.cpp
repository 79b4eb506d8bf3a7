// SPDX-License-Identifier: MIT
/// The error family, its messages and the handler of builds without exceptions.
#include <demi/core/error.hpp>

#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <support/catch.hpp>
#include <type_traits>

namespace {

template <class Caught, class Thrown>
std::string message_caught_as(const Thrown& failure) {
    try {
        demi::detail::raise(failure);
    } catch (const Caught& caught) {
        return caught.what();
    } catch (...) {
        return "something else was thrown";
    }
}

}  // namespace

TEMPLATE_TEST_CASE("every error is caught as itself, as demi::error and as std::runtime_error", "",
                   demi::invalid_argument, demi::invalid_state, demi::bad_checkpoint) {
    const TestType failure("who: value 3, expected 4");
    CHECK(message_caught_as<TestType>(failure) == "who: value 3, expected 4");
    CHECK(message_caught_as<demi::error>(failure) == "who: value 3, expected 4");
    CHECK(message_caught_as<std::runtime_error>(failure) == "who: value 3, expected 4");
}

TEST_CASE("the kinds of error are distinct") {
    CHECK_FALSE(std::is_base_of_v<demi::invalid_argument, demi::invalid_state>);
    CHECK_FALSE(std::is_base_of_v<demi::invalid_argument, demi::bad_checkpoint>);
    CHECK_FALSE(std::is_base_of_v<demi::invalid_argument, demi::out_of_memory>);
    CHECK_FALSE(std::is_convertible_v<demi::out_of_memory*, std::bad_alloc*>);
}

TEST_CASE("an out_of_memory error keeps the size of the refused request") {
    const std::size_t bytes = std::size_t{5} << 32;
    try {
        demi::detail::raise(demi::out_of_memory("host: no memory", bytes));
    } catch (const demi::error& failure) {
        const auto* refused = dynamic_cast<const demi::out_of_memory*>(&failure);
        REQUIRE(refused != nullptr);
        CHECK(refused->requested_bytes() == bytes);
        CHECK(std::string(refused->what()) == "host: no memory");
    }
}

TEST_CASE("a message joins strings and numbers of every kind") {
    using demi::detail::message;
    const std::string name = "gemm";
    CHECK(message() == "");
    CHECK(message(name, ": ", 3, " x ", std::size_t{4}) == "gemm: 3 x 4");
    CHECK(message(-7, " ", std::uint8_t{200}, " ", std::int64_t{-1}) == "-7 200 -1");
    CHECK(message(true, " ", false) == "true false");
    CHECK(message(0.5f, " ", -2.25) == "0.5 -2.25");
}

TEST_CASE("a message shows numbers that do not round-trip in ordinary text exactly") {
    using demi::detail::message;
    CHECK(message(0.1f) == "0.1");
    CHECK(message(std::numeric_limits<float>::infinity()) == "inf");
    CHECK(message(-std::numeric_limits<double>::infinity()) == "-inf");
    CHECK(message(std::numeric_limits<float>::quiet_NaN()) == "nan");
    CHECK(message(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
    CHECK(message(std::numeric_limits<double>::denorm_min()) == "5e-324");
    CHECK(std::stof(message(std::numeric_limits<float>::max())) ==
          std::numeric_limits<float>::max());
}

TEST_CASE("setting an error handler returns the former one") {
    const demi::error_handler first = [](const char*) {};
    const demi::error_handler second = [](const char* text) { static_cast<void>(*text); };
    const demi::error_handler original = demi::set_error_handler(first);
    CHECK(original != nullptr);
    CHECK(demi::set_error_handler(second) == first);
    CHECK(demi::set_error_handler(original) == second);
}
