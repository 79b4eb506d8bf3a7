// SPDX-License-Identifier: MIT
/// The command line of 10_train_digits.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace digits_demo {

/// A command line that cannot be used; the message is one line.
class bad_usage : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

inline constexpr std::array<std::string_view, 4> policy_names = {
    "full_float32", "mixed_float16", "float16_unscaled", "mixed_bfloat16"};

struct options {
    std::vector<std::string> policies{policy_names.begin(), policy_names.end()};
    std::size_t batch = 480;
    std::size_t budget = std::size_t{2} << 20;
    std::size_t epochs = 50;
    std::uint64_t seed = 1;
    std::size_t seeds = 5;
    std::size_t mean_over = std::size_t{1} << 22;
    std::string report = "report.html";
    std::string data;
    std::string device = "host";
    bool help = false;
};

inline constexpr std::string_view usage =
    R"(Trains a small network on handwritten digits under several precision policies.

usage: example_10_train_digits [options]

  --policy NAME[,NAME...]  full_float32, mixed_float16, float16_unscaled, mixed_bfloat16;
                           default: all of them
  --batch N                images between two optimizer steps (default 480)
  --budget BYTES           memory for training, such as 1048576, 1M or 1MiB (default 2MiB)
  --epochs N               passes over the training images (default 50)
  --seed N                 first seed (default 1)
  --seeds N                runs per policy, with consecutive seeds (default 5)
  --mean-over N            the loss of one image has weight 1/N (default 4194304)
  --report PATH            where to write the report, "" for nowhere (default report.html)
  --data PATH              digits.csv (default: the one in examples/data)
  --device NAME            host, or cuda in a program built with CUDA (default host)
  --help                   this text
)";

namespace detail {

inline std::uint64_t parse_number(std::string_view name, std::string_view text, std::uint64_t least,
                                  std::uint64_t most) {
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
    if (!whole || value < least || value > most) {
        throw bad_usage(std::string(name) + " of '" + std::string(text) +
                        "', expected a whole number from " + std::to_string(least) + " to " +
                        std::to_string(most));
    }
    return value;
}

inline std::size_t parse_bytes(std::string_view name, std::string_view text) {
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;
    constexpr std::string_view letters = "KMG";
    std::string_view digits = text;
    if (digits.ends_with("iB")) digits.remove_suffix(2);
    unsigned shift = 0;
    if (!digits.empty() && letters.find(digits.back()) != letters.npos) {
        shift = 10 * (static_cast<unsigned>(letters.find(digits.back())) + 1);
        digits.remove_suffix(1);
    }
    std::uint64_t count = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
    const bool unit_is_known = digits.size() == text.size() || shift != 0;
    if (!whole || !unit_is_known || count == 0 || count > (most_bytes >> shift)) {
        throw bad_usage(std::string(name) + " of '" + std::string(text) +
                        "', expected bytes from 1 to 1024G, such as 1048576, 1M or 1MiB");
    }
    return count << shift;
}

inline std::vector<std::string> parse_policies(std::string_view text) {
    std::vector<std::string> names;
    for (std::size_t begin = 0; begin <= text.size();) {
        const auto end = std::min(text.find(',', begin), text.size());
        names.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
        if (std::find(policy_names.begin(), policy_names.end(), names.back()) ==
            policy_names.end()) {
            throw bad_usage("--policy of '" + names.back() +
                            "', expected full_float32, mixed_float16, float16_unscaled or "
                            "mixed_bfloat16");
        }
    }
    return names;
}

}  // namespace detail

/// Reads `--name value` and `--name=value`. Throws `bad_usage` that names what cannot be used.
inline options parse_options(const std::vector<std::string_view>& arguments) {
    constexpr std::uint64_t million = 1'000'000;
    options chosen;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto equals = std::min(arguments[i].find('='), arguments[i].size());
        const auto name = arguments[i].substr(0, equals);
        if (name == "--help" || name == "-h") {
            chosen.help = true;
            return chosen;
        }
        const auto value = [&]() -> std::string_view {
            if (equals < arguments[i].size()) return arguments[i].substr(equals + 1);
            if (i + 1 == arguments.size()) {
                throw bad_usage(std::string(name) + " without a value, see --help");
            }
            return arguments[++i];
        };
        const auto number = [&](std::uint64_t least, std::uint64_t most) {
            return detail::parse_number(name, value(), least, most);
        };
        if (name == "--policy") {
            chosen.policies = detail::parse_policies(value());
        } else if (name == "--batch") {
            chosen.batch = number(1, million);
        } else if (name == "--budget") {
            chosen.budget = detail::parse_bytes(name, value());
        } else if (name == "--epochs") {
            chosen.epochs = number(1, million);
        } else if (name == "--seed") {
            chosen.seed = number(0, ~std::uint64_t{0} >> 1);
        } else if (name == "--seeds") {
            chosen.seeds = number(1, 1000);
        } else if (name == "--mean-over") {
            chosen.mean_over = number(1, std::uint64_t{1} << 40);
        } else if (name == "--report") {
            chosen.report = value();
        } else if (name == "--data") {
            chosen.data = value();
        } else if (name == "--device") {
            chosen.device = value();
            if (chosen.device != "host" && chosen.device != "cuda") {
                throw bad_usage("--device of '" + chosen.device + "', expected host or cuda");
            }
        } else {
            throw bad_usage("unknown option '" + std::string(arguments[i]) + "', see --help");
        }
    }
    return chosen;
}

}  // namespace digits_demo
