// SPDX-License-Identifier: MIT
#include "../../../examples/digits/options.hpp"

#include <string>
#include <string_view>
#include <support/catch.hpp>
#include <vector>

namespace {

using digits_demo::options;
using digits_demo::parse_options;
using arguments = std::vector<std::string_view>;

/// What the user is told, empty when the arguments are accepted.
std::string complaint(const arguments& given) {
    try {
        parse_options(given);
    } catch (const digits_demo::bad_usage& failure) {
        return failure.what();
    }
    return {};
}

}  // namespace

TEST_CASE("without arguments every policy is compared") {
    const options chosen = parse_options({});
    CHECK(chosen.policies.size() == digits_demo::policy_names.size());
    CHECK(chosen.seeds == 5);
    CHECK(!chosen.help);
}

TEST_CASE("values follow their option as the next argument or after an equals sign") {
    const options chosen = parse_options({"--policy", "mixed_float16,full_float32", "--batch=96",
                                          "--epochs", "7", "--seed=0", "--seeds", "2",
                                          "--mean-over=1000", "--report=", "--data", "a=b.csv"});
    CHECK(chosen.policies == std::vector<std::string>{"mixed_float16", "full_float32"});
    CHECK(chosen.batch == 96);
    CHECK(chosen.epochs == 7);
    CHECK(chosen.seed == 0);
    CHECK(chosen.seeds == 2);
    CHECK(chosen.mean_over == 1000);
    CHECK(chosen.report.empty());
    CHECK(chosen.data == "a=b.csv");
    CHECK(parse_options({"--help"}).help);
}

TEST_CASE("a budget is a number of bytes with an optional unit") {
    CHECK(parse_options({"--budget", "1"}).budget == 1);
    CHECK(parse_options({"--budget", "3K"}).budget == 3072);
    CHECK(parse_options({"--budget", "2MiB"}).budget == 2097152);
    CHECK(parse_options({"--budget", "1024G"}).budget == std::size_t{1} << 40);
    for (const std::string_view bad :
         {"", "0", "-1", "K", "iB", "8iB", "1.5M", "2MB", "M2", "1025G", "18446744073709551616"}) {
        CAPTURE(bad);
        CHECK(complaint({"--budget", bad}) ==
              "--budget of '" + std::string(bad) +
                  "', expected bytes from 1 to 1024G, such as 1048576, 1M or 1MiB");
    }
}

TEST_CASE("a value that cannot be used is named, with what was expected") {
    CHECK(complaint({"--batch", "0"}) ==
          "--batch of '0', expected a whole number from 1 to 1000000");
    CHECK(complaint({"--epochs=3x"}) ==
          "--epochs of '3x', expected a whole number from 1 to 1000000");
    CHECK(complaint({"--seeds", "-1"}) ==
          "--seeds of '-1', expected a whole number from 1 to 1000");
    CHECK(complaint({"--policy", "full_float32,"}) ==
          "--policy of '', expected full_float32, mixed_float16, float16_unscaled or "
          "mixed_bfloat16");
    CHECK(complaint({"--seed"}) == "--seed without a value, see --help");
    CHECK(complaint({"--colour", "red"}) == "unknown option '--colour', see --help");
    CHECK(complaint({"digits"}) == "unknown option 'digits', see --help");
}
