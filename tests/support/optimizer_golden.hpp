// SPDX-License-Identifier: MIT
/// Reads the golden runs of tests/conformance/make_optimizer_golden.py and repeats them.
#pragma once

#include <demi/training/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

struct golden_run {
    std::string rule;
    std::map<std::string, float> settings;
    std::vector<float> weights;
    std::vector<std::vector<float>> gradients;
    std::vector<std::vector<double>> expected;
};

template <class Number>
std::vector<Number> golden_numbers(std::istream& line) {
    std::vector<Number> numbers;
    for (std::string word; line >> word;) {
        numbers.push_back(static_cast<Number>(std::strtod(word.c_str(), nullptr)));
    }
    return numbers;
}

/// The runs of one rule.
inline std::vector<golden_run> golden_runs(const std::string& rule) {
    std::ifstream file(DEMI_TEST_DATA_DIR "/optimizer_golden.txt");
    std::vector<golden_run> runs;
    for (std::string text; std::getline(file, text);) {
        std::istringstream line(text);
        std::string word;
        line >> word;
        if (word == "case") {
            golden_run& run = runs.emplace_back();
            line >> run.rule;
            while (line >> word) {
                const auto sign = word.find('=');
                run.settings[word.substr(0, sign)] =
                    static_cast<float>(std::strtod(word.c_str() + sign + 1, nullptr));
            }
        } else if (word == "weights") {
            runs.back().weights = golden_numbers<float>(line);
        } else if (word == "gradients") {
            runs.back().gradients.push_back(golden_numbers<float>(line));
        } else if (word == "expected") {
            runs.back().expected.push_back(golden_numbers<double>(line));
        }
    }
    std::erase_if(runs, [&](const golden_run& run) { return run.rule != rule; });
    return runs;
}

/// The largest distance from the golden weights over a run, in units in the last place of the
/// largest float that the weight was on its way.
template <class Rule, class Backend>
double golden_distance(const Backend& where, const Rule& rule, const golden_run& run) {
    std::vector<float> weights = run.weights;
    demi::optimizer<Rule, demi::full_float32, Backend> optimizer(where, rule, weights);
    std::vector<double> largest(weights.begin(), weights.end());
    double distance = 0;
    for (std::size_t step = 0; step < run.gradients.size(); ++step) {
        optimizer.step(run.gradients[step]);
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const double expected = run.expected[step][i];
            largest[i] = std::max(std::fabs(largest[i]), std::fabs(expected));
            const double ulp = std::ldexp(1.0, std::ilogb(largest[i]) - 23);
            distance =
                std::max(distance, std::fabs(static_cast<double>(weights[i]) - expected) / ulp);
        }
    }
    return distance;
}
