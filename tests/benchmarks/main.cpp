// SPDX-License-Identifier: MIT
/// Measures the host backend beside other software and the limits of the machine.
#include "environment.hpp"
#include "peers.hpp"
#include "session.hpp"
#include <demi/host/parallel.hpp>

#include <charconv>
#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

constexpr const char* usage =
    "demi_benchmarks [--quick] [--threads 1,2] [--filter TEXT] [--json FILE]\n"
    "  --quick    fewer shapes and samples: under a minute instead of six\n"
    "  --threads  numbers of threads, one after the other\n"
    "  --filter   only rows with this text in \"work, case\", for example \"bf16 GEMM, 512\"\n"
    "  --json     writes every figure to a file\n"
    "The tables go to the standard output as Markdown, each row to the standard error at once.\n";

std::vector<std::size_t> parse_threads(std::string_view text) {
    std::vector<std::size_t> counts;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (true) {
        std::size_t count = 0;
        const auto [next, failure] = std::from_chars(at, end, count);
        if (failure != std::errc{} || count == 0 || (next != end && *next != ',')) {
            throw std::invalid_argument("--threads " + std::string(text) +
                                        ": expected numbers above 0 with commas between them");
        }
        counts.push_back(count);
        if (next == end) return counts;
        at = next + 1;
    }
}

bench::options parse(int count, char** arguments) {
    bench::options chosen;
    for (int i = 1; i < count; ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--quick") {
            chosen.quick = true;
            continue;
        }
        if (argument != "--threads" && argument != "--filter" && argument != "--json") {
            throw std::invalid_argument(std::string(argument) + ": no such option");
        }
        if (i + 1 == count) throw std::invalid_argument(std::string(argument) + ": value missing");
        const std::string value = arguments[++i];
        if (argument == "--threads") {
            chosen.threads = parse_threads(value);
        } else {
            (argument == "--filter" ? chosen.filter : chosen.json_file) = value;
        }
    }
    return chosen;
}

void measure(const bench::options& chosen, bench::report& results) {
    for (const std::size_t threads : chosen.threads) {
        if (threads > demi::default_executor().concurrency) {
            std::cerr << threads << " threads: left out, there are "
                      << demi::default_executor().concurrency << '\n';
            continue;
        }
        bench::set_peer_threads(threads);
        bench::session where(chosen, threads, results);
        bench::measure_casts(where);
        bench::measure_products(where);
        bench::measure_passes(where);
    }
    bench::count_trials(chosen, results);
}

void run(const bench::options& chosen) {
    std::ofstream json;
    if (!chosen.json_file.empty()) {
        json.open(chosen.json_file);
        if (!json) throw std::runtime_error("cannot write " + chosen.json_file);
    }
    bench::report results;
    bench::state_machine(results);
    const std::string load = bench::load_average();
    const auto start = std::chrono::steady_clock::now();
    measure(chosen, results);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    results.state("measured", std::string(chosen.quick ? "quickly" : "in full") + ", " +
                                  std::to_string(static_cast<int>(taken.count())) +
                                  " s, load average " + load + " before and " +
                                  bench::load_average() + " after");
    results.print_markdown(std::cout);
    if (json.is_open()) results.write_json(json);
}

}  // namespace

int main(int count, char** arguments) {
    bench::clean_environment(arguments);
    try {
        run(parse(count, arguments));
    } catch (const std::invalid_argument& failure) {
        std::cerr << failure.what() << '\n' << usage;
        return 2;
    } catch (const std::exception& failure) {
        std::cerr << failure.what() << '\n';
        return 1;
    }
    return 0;
}
