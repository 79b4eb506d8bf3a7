// SPDX-License-Identifier: MIT
#include <demi/scaling/loss_scale_presets.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <support/catch.hpp>
#include <vector>

using demi::dynamic_loss_scale;
using demi::hysteresis_refill;
namespace preset = demi::loss_scale_preset;

namespace {

static_assert((preset::pytorch().validate(), true));
static_assert((preset::apex_amp().validate(), true));
static_assert((preset::apex_fp16_utils().validate(), true));
static_assert((preset::apex_hysteresis().validate(), true));
static_assert((preset::megatron().validate(), true));
static_assert((preset::deepspeed().validate(), true));
static_assert((preset::deepspeed_consecutive().validate(), true));
static_assert((preset::deepspeed_fused().validate(), true));
static_assert((preset::keras().validate(), true));
static_assert((preset::jmp().validate(), true));
static_assert((preset::paddle().validate(), true));
static_assert((preset::mxnet().validate(), true));
static_assert(preset::pytorch() == dynamic_loss_scale{});

const std::map<std::string, dynamic_loss_scale> presets = {
    {"pytorch", preset::pytorch()},
    {"apex_amp", preset::apex_amp()},
    {"apex_fp16_utils", preset::apex_fp16_utils()},
    {"apex_hysteresis", preset::apex_hysteresis()},
    {"megatron", preset::megatron()},
    {"deepspeed", preset::deepspeed()},
    {"deepspeed_consecutive", preset::deepspeed_consecutive()},
    {"deepspeed_fused", preset::deepspeed_fused()},
    {"keras", preset::keras()},
    {"jmp", preset::jmp()},
    {"paddle", preset::paddle()},
    {"mxnet", preset::mxnet()},
};

std::vector<float> scales(const dynamic_loss_scale& rule, const std::vector<int>& overflows) {
    std::vector<float> trace;
    auto now = rule.initial();
    for (const int overflowed : overflows) {
        now = rule.next(now, overflowed != 0);
        trace.push_back(now.scale);
    }
    return trace;
}

/// The rule under the numbers of the worked trace: interval 4, from 1024.
dynamic_loss_scale worked(dynamic_loss_scale rule, int hysteresis = 2) {
    rule.initial_scale = 1024;
    rule.growth_interval = 4;
    rule.hysteresis = hysteresis;
    return rule;
}

const std::vector<int> worked_overflows = {1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1};

struct golden_trace {
    std::string name;
    dynamic_loss_scale rule;
    std::uint32_t initial = 0;
    std::vector<bool> overflows;
    std::map<std::size_t, std::uint32_t> changes;
};

/// Hexadecimal bits whose zeros at the end were left out.
std::uint32_t bits_of(std::string text) {
    text.resize(8, '0');
    return static_cast<std::uint32_t>(std::strtoul(text.c_str(), nullptr, 16));
}

void change_setting(const std::string& setting, dynamic_loss_scale& rule) {
    const std::size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    const double value = std::strtod(setting.c_str() + equals + 1, nullptr);
    if (name == "initial_scale") {
        rule.initial_scale = static_cast<float>(value);
    } else if (name == "growth_factor") {
        rule.growth_factor = value;
    } else if (name == "backoff_factor") {
        rule.backoff_factor = value;
    } else if (name == "growth_interval") {
        rule.growth_interval = static_cast<std::int32_t>(value);
    } else if (name == "hysteresis") {
        rule.hysteresis = static_cast<std::int32_t>(value);
    } else {
        INFO(setting);
        REQUIRE(name == "floor");
        rule.floor = static_cast<float>(value);
    }
}

void read_case(std::istringstream& line, std::vector<golden_trace>& traces) {
    golden_trace trace;
    line >> trace.name;
    INFO(trace.name);
    REQUIRE(presets.count(trace.name) == 1);
    trace.rule = presets.at(trace.name);
    for (std::string setting; line >> setting;) change_setting(setting, trace.rule);
    traces.push_back(trace);
}

void read_steps(std::istringstream& line, golden_trace& trace) {
    bool overflowed = false;
    for (std::size_t length; line >> length; overflowed = !overflowed) {
        trace.overflows.insert(trace.overflows.end(), length, overflowed);
    }
}

void read_scales(std::istringstream& line, golden_trace& trace) {
    std::size_t step = 0;
    for (std::string change; line >> change;) {
        const std::size_t colon = change.find(':');
        step += std::strtoul(change.c_str(), nullptr, 10);
        trace.changes[step] = bits_of(change.substr(colon + 1));
    }
}

std::vector<golden_trace> read_golden_traces() {
    std::ifstream file(DEMI_TEST_DATA_DIR "/loss_scale_traces.txt");
    std::vector<golden_trace> traces;
    for (std::string text; std::getline(file, text);) {
        std::istringstream line(text);
        std::string kind;
        line >> kind;
        if (kind == "case") read_case(line, traces);
        if (kind == "steps") read_steps(line, traces.back());
        if (kind == "scales") read_scales(line, traces.back());
        if (kind == "initial") {
            std::string bits;
            line >> bits;
            traces.back().initial = bits_of(bits);
        }
    }
    return traces;
}

/// The first step after which the scale differs, or 0.
std::size_t first_difference(const golden_trace& trace) {
    auto now = trace.rule.initial();
    std::uint32_t expected = trace.initial;
    for (std::size_t step = 1; step <= trace.overflows.size(); ++step) {
        now = trace.rule.next(now, trace.overflows[step - 1]);
        const auto change = trace.changes.find(step);
        if (change != trace.changes.end()) expected = change->second;
        if (__builtin_bit_cast(std::uint32_t, now.scale) != expected) return step;
    }
    return 0;
}

}  // namespace

TEST_CASE("S85: six rules give six answers to the same overflows") {
    const auto trace = [](const dynamic_loss_scale& rule, int hysteresis = 2) {
        return scales(worked(rule, hysteresis), worked_overflows);
    };
    CHECK(trace(preset::pytorch(), 1) ==
          std::vector<float>{512, 512, 256, 256, 128, 128, 128, 128, 256, 128, 64});
    CHECK(trace(preset::megatron()) ==
          std::vector<float>{1024, 1024, 512, 512, 256, 256, 256, 256, 512, 512, 256});
    CHECK(trace(preset::apex_hysteresis()) ==
          std::vector<float>{1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 2048, 2048, 1024});
    CHECK(trace(preset::deepspeed()) ==
          std::vector<float>{1024, 1024, 512, 512, 256, 256, 256, 256, 256, 128, 64});
    CHECK(trace(preset::deepspeed_consecutive()) ==
          std::vector<float>{1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 512});
    CHECK(trace(preset::paddle()) ==
          std::vector<float>{1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 2048, 2048, 1024});
}

TEST_CASE("Apex's kernel and Paddle part where bad steps go on") {
    const std::vector<int> overflows = {1, 1, 1, 1};
    CHECK(scales(worked(preset::apex_hysteresis()), overflows) ==
          std::vector<float>{1024, 512, 256, 128});
    CHECK(scales(worked(preset::paddle()), overflows) == std::vector<float>{1024, 512, 512, 256});
}

TEST_CASE("DeepSpeed grows first at clean step interval + 1, then every interval") {
    auto rule = preset::deepspeed();
    auto now = rule.initial();
    std::vector<int> growths;
    for (int step = 1; step <= 4000; ++step) {
        const auto next = rule.next(now, false);
        if (next.scale > now.scale) growths.push_back(step);
        now = next;
    }
    CHECK(growths == std::vector<int>{1001, 2001, 3001});
}

TEST_CASE("every preset gives the golden traces of its system, step for step") {
    const std::vector<golden_trace> traces = read_golden_traces();
    std::map<std::string, int> covered;
    std::size_t changes = 0;
    for (const golden_trace& trace : traces) {
        CAPTURE(trace.name, trace.rule.growth_interval, trace.rule.hysteresis);
        REQUIRE(trace.overflows.size() >= 300);
        trace.rule.validate();
        CHECK(__builtin_bit_cast(std::uint32_t, trace.rule.initial().scale) == trace.initial);
        CHECK(first_difference(trace) == 0);
        ++covered[trace.name];
        changes += trace.changes.size();
    }
    for (const auto& [name, rule] : presets) {
        CAPTURE(name);
        CHECK(covered[name] >= 6);
    }
    CHECK(traces.size() >= 90);
    CHECK(changes >= 5000);
}

TEST_CASE("golden traces tell every knob: a rule with one setting off fails at least one trace") {
    const std::vector<golden_trace> traces = read_golden_traces();
    const auto failures = [&](auto&& spoil) {
        int failed = 0;
        for (golden_trace trace : traces) {
            const dynamic_loss_scale before = trace.rule;
            spoil(trace.rule);
            if (trace.rule != before && first_difference(trace) != 0) ++failed;
        }
        return failed;
    };
    CHECK(failures([](auto& rule) { rule.growth_factor *= 1.5; }) > 50);
    CHECK(failures([](auto& rule) { rule.backoff_factor *= 0.75; }) > 50);
    CHECK(failures([](auto& rule) { ++rule.growth_interval; }) > 50);
    CHECK(failures([](auto& rule) { rule.growth_delay = 1 - rule.growth_delay; }) > 50);
    CHECK(failures([](auto& rule) { ++rule.hysteresis; }) > 50);
    CHECK(failures([](auto& rule) { rule.floor = demi::smallest_loss_scale; }) >= 4);
    CHECK(failures([](auto& rule) { rule.ceiling = demi::largest_loss_scale; }) >= 2);
    CHECK(failures([](auto& rule) { rule.refill_on_backoff = !rule.refill_on_backoff; }) > 10);
    CHECK(failures([](auto& rule) {
              rule.refill = rule.refill == hysteresis_refill::on_growth
                                ? hysteresis_refill::on_clean_step
                                : hysteresis_refill::on_growth;
          }) > 10);
}
