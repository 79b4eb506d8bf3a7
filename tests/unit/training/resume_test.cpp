// SPDX-License-Identifier: MIT
/// A run that stops after any step, and goes on in a new process, ends with the same bits.
#include <demi/precision/convert.hpp>
#include <demi/training/adamw.hpp>
#include <demi/training/checkpoint.hpp>
#include <demi/training/optimizer.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <span>
#include <spawn.h>
#include <string>
#include <support/backends.hpp>
#include <support/bits.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <support/random_values.hpp>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char** environ;

namespace {

using test_backend = demi::host_backend;

constexpr std::uint64_t last_step = 12;
/// Of the weights and their rounding; a resumed run begins with another one.
constexpr std::uint64_t first_seed = 42, other_seed = 43;

/// Narrow in every role, with a copy that is not the rounding of the stored weights.
struct narrow {
    using compute_type = demi::float8_e4m3;
    using gradient_type = demi::float8_e5m2;
    using param_type = demi::bfloat16;
    using state_type = demi::bfloat16;
    using param_rounding = demi::stochastic;
};

/// A small network in training: its gradients come from the compute copy, as in a real one.
template <class Policy, class Backend>
class training {
    using traits = demi::policy_traits<Policy>;
    using compute = typename traits::compute_type;
    using gradient = typename traits::gradient_type;

public:
    explicit training(std::uint64_t seed) : computes_(start(seed)) {
        optimizer_.set_rounding_seed(seed);
    }

    void run_until(std::uint64_t step) {
        for (; step_ < step; ++step_) take_step();
    }

    std::uint64_t skipped() const { return scaler_.state().skipped_steps; }

    void save(const std::string& path) const {
        demi::checkpoint file;
        file.store("optimizer", optimizer_);
        file.store("scaler", scaler_);
        file.store("step", step_);
        file.write(path);
    }

    void load(const std::string& path) {
        const auto file = demi::checkpoint::read(path);
        file.load("optimizer", optimizer_);
        file.load("scaler", scaler_);
        file.load("step", step_);
    }

    /// Everything that the run has made, as one record of bits.
    std::vector<unsigned char> bits() const {
        std::vector<unsigned char> bytes;
        const auto append = [&](const auto& tensors) {
            for (const auto& tensor : tensors) {
                const auto* first = reinterpret_cast<const unsigned char*>(tensor.data());
                bytes.insert(bytes.end(), first, first + tensor.size() * sizeof(tensor[0]));
            }
        };
        append(computes_);
        append(optimizer_.master_weights());
        append(optimizer_.slot(0));
        append(optimizer_.slot(1));
        const auto state = scaler_.state();
        append(std::vector<std::vector<std::uint64_t>>{
            {optimizer_.steps(), step_, demi::to_bits(state.rule.scale),
             static_cast<std::uint64_t>(state.rule.clean_steps), state.applied_steps,
             state.skipped_steps, state.consecutive_skips}});
        return bytes;
    }

private:
    static std::vector<std::vector<compute>> start(std::uint64_t seed) {
        std::mt19937_64 random(seed);
        return {random_vector<compute>(random, 37, -3, 2),
                {},
                random_vector<compute>(random, 70, -3, 2)};
    }

    /// Pulls every weight to a moving target; overflows at two steps of its own accord, and where
    /// the scale has grown too large.
    void take_step() {
        const float scale = scaler_.scale();
        std::vector<std::vector<gradient>> gradients;
        std::mt19937_64 random(step_);
        for (const auto& tensor : computes_) {
            std::vector<gradient> values;
            for (const compute& weight : tensor) {
                const float target = static_cast<float>(random() % 1024) / 512.0f;
                values.push_back(
                    demi::convert<gradient>(scale * (demi::convert<float>(weight) - target)));
            }
            gradients.push_back(values);
        }
        if (step_ == 3 || step_ == 8) {
            gradients[2][5] = demi::convert<gradient>(std::numeric_limits<float>::infinity());
        }
        optimizer_.step(gradients, scaler_, demi::clip_by_global_norm{2.0f});
    }

    Backend where_{};
    std::vector<std::vector<compute>> computes_;
    demi::optimizer<demi::adamw, Policy, Backend> optimizer_{
        where_, {.learning_rate = 0.03f}, computes_};
    demi::loss_scaler<Backend> scaler_{
        where_, demi::dynamic_loss_scale{.initial_scale = 1024.0f, .growth_interval = 3}};
    std::uint64_t step_ = 0;
};

/// One way to train, by the name that a new process is told.
template <class Visitor>
void with_training(const std::string& name, std::uint64_t seed, Visitor visit) {
    if (name == "full_float32") visit(training<demi::full_float32, test_backend>(seed));
    if (name == "mixed_float16") visit(training<demi::mixed_float16, test_backend>(seed));
    if (name == "mixed_bfloat16") visit(training<demi::mixed_bfloat16, test_backend>(seed));
    if (name == "pure_bfloat16") visit(training<demi::pure_bfloat16, test_backend>(seed));
    if (name == "narrow") visit(training<narrow, test_backend>(seed));
}

struct scratch_folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("demi_resume_" + std::to_string(::getpid()));

    scratch_folder() { std::filesystem::create_directories(path); }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    ~scratch_folder() { std::filesystem::remove_all(path); }
};

std::vector<unsigned char> read_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Runs the test case below in a new process; the result of the run, empty when it failed.
std::vector<unsigned char> resume_elsewhere(const std::string& name, const std::string& path) {
    const std::string result = path + ".result";
    ::setenv("DEMI_RESUME_TRAINING", name.c_str(), 1);
    ::setenv("DEMI_RESUME_FROM", path.c_str(), 1);
    std::string program = "resume_test", test = "a run goes on in this process", quiet = "-o",
                nowhere = "/dev/null";
    char* arguments[] = {program.data(), test.data(), quiet.data(), nowhere.data(), nullptr};
    pid_t child = 0;
    int status = -1;
    if (::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0 ||
        ::waitpid(child, &status, 0) != child || status != 0) {
        return {};
    }
    return read_bytes(result);
}

}  // namespace

// Hidden, for it is only called by the one below, in a process of its own.
TEST_CASE("a run goes on in this process", "[.]") {
    const char* name = std::getenv("DEMI_RESUME_TRAINING");
    const char* from = std::getenv("DEMI_RESUME_FROM");
    REQUIRE(name != nullptr);
    REQUIRE(from != nullptr);
    with_training(name, other_seed, [&](auto training) {
        training.load(from);
        training.run_until(last_step);
        const auto bits = training.bits();
        std::ofstream file(std::string(from) + ".result", std::ios::binary);
        file.write(reinterpret_cast<const char*>(bits.data()),
                   static_cast<std::streamsize>(bits.size()));
    });
}

TEST_CASE("a run stopped after any step ends in a new process with the same bits") {
    const scratch_folder folder;
    for (const std::string name :
         {"full_float32", "mixed_float16", "mixed_bfloat16", "pure_bfloat16", "narrow"}) {
        CAPTURE(name);
        std::vector<unsigned char> whole;
        std::uint64_t skipped = 0;
        with_training(name, first_seed, [&](auto training) {
            training.run_until(last_step);
            whole = training.bits();
            skipped = training.skipped();
        });
        CHECK(skipped >= 2);
        CHECK(skipped < last_step / 2);
        for (std::uint64_t stop = 0; stop <= last_step; ++stop) {
            CAPTURE(stop);
            const std::string path = (folder.path / (name + std::to_string(stop))).string();
            with_training(name, first_seed, [&](auto training) {
                training.run_until(stop);
                training.save(path);
            });
            CHECK(resume_elsewhere(name, path) == whole);
        }
    }
}
