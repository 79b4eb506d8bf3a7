// SPDX-License-Identifier: MIT
#include "environment.hpp"

#include "peers.hpp"
#include <demi/core/version.hpp>
#include <demi/host/isa.hpp>
#include <demi/host/parallel.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>
#include <utility>

namespace bench {

namespace {

struct setting {
    const char* name;
    const char* value;  ///< null for none
};

/// The last two let idle threads sleep after a fraction of a millisecond; between calls of one
/// contender they stay awake.
constexpr setting wanted[] = {{"OPENBLAS_CORETYPE", nullptr},    {"OPENBLAS_L2_SIZE", nullptr},
                              {"OPENBLAS_NUM_THREADS", nullptr}, {"OMP_NUM_THREADS", nullptr},
                              {"OMP_WAIT_POLICY", nullptr},      {"DNNL_MAX_CPU_ISA", nullptr},
                              {"DNNL_VERBOSE", nullptr},         {"OPENBLAS_THREAD_TIMEOUT", "20"},
                              {"GOMP_SPINCOUNT", "20000"}};

bool holds(const setting& one) {
    const char* present = std::getenv(one.name);
    if (one.value == nullptr || present == nullptr) return one.value == present;
    return std::string_view(one.value) == present;
}

std::string first_line_of(const char* file, std::string_view start) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(start)) return line;
    }
    return {};
}

std::string processor() {
    const std::string line = first_line_of("/proc/cpuinfo", "model name");
    const auto colon = line.find(": ");
    std::string name = colon == std::string::npos ? "unknown" : line.substr(colon + 2);
    for (const char* key : {"cpu family", "model\t"}) {
        const std::string found = first_line_of("/proc/cpuinfo", key);
        const auto at = found.find(": ");
        if (at != std::string::npos) {
            name += std::string(key[0] == 'c' ? ", family " : " model ") + found.substr(at + 2);
        }
    }
    return name;
}

std::string instruction_sets() {
    std::string text(name(demi::default_host_isa()));
    if (demi::default_host_isa() != demi::detected_host_isa()) {
        text += " as asked for, instead of " + std::string(name(demi::detected_host_isa()));
    }
    const std::string flags = first_line_of("/proc/cpuinfo", "flags");
    for (const char* flag : {"avx512_bf16", "avx512_fp16", "amx_bf16"}) {
        if (text.find(flag) == std::string::npos &&
            (flags + ' ').find(' ' + std::string(flag) + ' ') != std::string::npos) {
            text += std::string(", processor has ") + flag;
        }
    }
    return text;
}

std::string compiler() {
#if defined(__clang__)
    return "clang " + std::to_string(__clang_major__) + '.' + std::to_string(__clang_minor__);
#elif defined(__GNUC__)
    return "g++ " + std::to_string(__GNUC__) + '.' + std::to_string(__GNUC_MINOR__);
#else
    return "unknown";
#endif
}

}  // namespace

void clean_environment(char** arguments) {
    bool right = true;
    for (const setting& one : wanted) right = right && holds(one);
    constexpr const char* mark = "DEMI_BENCHMARK_STARTED_AGAIN";
    if (right || std::getenv(mark) != nullptr) return;
    for (const setting& one : wanted) {
        if (one.value == nullptr) {
            unsetenv(one.name);
        } else {
            setenv(one.name, one.value, 1);
        }
    }
    setenv(mark, "1", 1);
    execv("/proc/self/exe", arguments);
    std::perror("warning: cannot start again, OpenBLAS may run other kernels than its own choice");
}

void set_peer_threads(std::size_t count) {
    openblas::set_threads(count);
    onednn::set_threads(count);
    eigen::set_threads(count);
}

void state_machine(report& results) {
    results.state("processor", processor());
    results.state("cores", std::to_string(demi::detail::available_processors()));
    results.state("instruction set", instruction_sets());
    results.state("demi", std::to_string(DEMI_VERSION_MAJOR) + '.' +
                              std::to_string(DEMI_VERSION_MINOR) + ", " + compiler() + ' ' +
                              BENCH_FLAGS);
    const std::pair<const char*, std::string> peers[] = {{"OpenBLAS", openblas::describe()},
                                                         {"oneDNN", onednn::describe()},
                                                         {"Eigen", eigen::describe()}};
    for (const auto& [name, version] : peers) {
        results.state(name, version.empty() ? "not installed" : version);
    }
}

std::string load_average() {
    std::ifstream file("/proc/loadavg");
    std::string one;
    file >> one;
    return one;
}

}  // namespace bench
