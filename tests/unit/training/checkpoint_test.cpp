// SPDX-License-Identifier: MIT
/// Named records, their file, and everything that can be wrong with it.
#include <demi/precision/bfloat16.hpp>
#include <demi/precision/float16.hpp>
#include <demi/scaling/loss_scaler.hpp>
#include <demi/training/checkpoint.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <support/backends.hpp>
#include <support/catch.hpp>
#include <support/message_of.hpp>
#include <unistd.h>
#include <vector>

namespace {

/// A folder for one test, gone afterwards.
struct scratch_folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("demi_checkpoint_" + std::to_string(::getpid()));

    scratch_folder() { std::filesystem::create_directories(path); }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    ~scratch_folder() { std::filesystem::remove_all(path); }

    std::string file(const char* name) const { return (path / name).string(); }
};

std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

void write_bytes(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

struct position {
    std::uint32_t epoch;
    std::uint32_t sample;
    friend bool operator==(const position&, const position&) = default;
};

/// An engine's object with `save` and `load`.
struct counter {
    int value = 0;
    void save(demi::checkpoint& into, const std::string& name) const {
        into.store(name + ".value", value);
    }
    void load(const demi::checkpoint& from, const std::string& name) {
        value = from.load<int>(name + ".value");
    }
};

demi::checkpoint small_checkpoint() {
    demi::checkpoint made;
    made.store("step", std::uint64_t{41});
    made.store("position", position{3, 77});
    const std::vector<demi::float16> weights{demi::float16(1.0f), demi::float16(-2.0f)};
    made.store_elements("weights", std::span<const demi::float16>(weights));
    made.store_elements("nothing", std::span<const float>());
    return made;
}

std::string refused(const std::string& path) {
    return message_of<demi::bad_checkpoint>([&] { demi::checkpoint::read(path); });
}

}  // namespace

TEST_CASE("values, arrays and objects come back from a file as they were") {
    const scratch_folder folder;
    demi::checkpoint made = small_checkpoint();
    const counter five{5};
    made.store("counter", five);
    demi::loss_scaler scaler{reference_backend{}};
    std::vector<float> bad{std::numeric_limits<float>::infinity()};
    scaler.unscale(bad);
    scaler.update();
    made.store("scaler", scaler);
    made.write(folder.file("a"));

    const auto found = demi::checkpoint::read(folder.file("a"));
    CHECK(found.size() == made.size());
    CHECK(found.contains("step"));
    CHECK_FALSE(found.contains("steps"));
    CHECK(found.load<std::uint64_t>("step") == 41);
    CHECK(found.load<position>("position") == position{3, 77});
    std::vector<demi::float16> weights(2);
    found.load_elements("weights", std::span(weights));
    CHECK(static_cast<float>(weights[1]) == -2.0f);
    found.load_elements("nothing", std::span<float>());
    std::uint64_t step = 0;
    found.load("step", step);
    CHECK(step == 41);
    counter loaded;
    found.load("counter", loaded);
    CHECK(loaded.value == 5);
    demi::loss_scaler other{reference_backend{}};
    found.load("scaler", other);
    CHECK(other.state() == scaler.state());
    CHECK(other.scale() == 32768.0f);
}

TEST_CASE("storing under a name again replaces what was there") {
    demi::checkpoint made;
    CHECK(made.size() == 0);
    made.store("a", 1);
    made.store("a", 2.0);
    CHECK(made.size() == 1);
    CHECK(made.load<double>("a") == 2.0);
}

TEST_CASE("a record that is missing, or of another type or count, is refused by name") {
    const demi::checkpoint made = small_checkpoint();
    const auto message = [](auto&& call) { return message_of<demi::bad_checkpoint>(call); };
    CHECK(mentions(message([&] { made.load<int>("velocity"); }), {"no record", "'velocity'"}));
    CHECK(mentions(message([&] { made.load<std::int64_t>("step"); }),
                   {"'step'", "1 x uint64", "expected 1 x int64"}));
    CHECK(mentions(message([&] { made.load<std::uint32_t>("step"); }), {"uint64", "uint32"}));
    CHECK(mentions(message([&] { made.load<double>("step"); }), {"uint64", "float64"}));

    std::vector<demi::float16> three(3, demi::float16(7.0f));
    CHECK(mentions(message([&] { made.load_elements("weights", std::span(three)); }),
                   {"'weights'", "2 x float16", "expected 3 x float16"}));
    CHECK(static_cast<float>(three[0]) == 7.0f);
    std::vector<demi::bfloat16> brains(2);
    CHECK(mentions(message([&] { made.load_elements("weights", std::span(brains)); }),
                   {"float16", "expected 2 x bfloat16"}));
    CHECK(mentions(message([&] { made.require<float>("nothing", 1); }),
                   {"0 x float32", "expected 1"}));

    struct larger {
        position at;
        std::uint64_t extra;
    };
    CHECK(mentions(message([&] { made.load<larger>("position"); }), {"'position'", "value8"}));
}

TEST_CASE("a scaler refuses a stored state that its rule cannot have made, unchanged") {
    demi::checkpoint made;
    auto state = demi::loss_scaler{reference_backend{}}.state();
    state.rule.scale = 0.0f;
    made.store("scaler", state);
    demi::loss_scaler scaler{reference_backend{}};
    const auto before = scaler.state();
    CHECK(mentions(message_of<demi::error>([&] { made.load("scaler", scaler); }), {"scale", "0"}));
    CHECK(scaler.state() == before);
    CHECK_THROWS_AS(demi::checkpoint{}.load("scaler", scaler), demi::bad_checkpoint);
    CHECK(scaler.state() == before);
}

TEST_CASE("a file that is cut off anywhere is refused") {
    const scratch_folder folder;
    const auto path = folder.file("a");
    small_checkpoint().write(path);
    const std::string bytes = bytes_of(path);
    REQUIRE(bytes.size() > 100);
    std::size_t accepted = 0, without_path = 0;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        write_bytes(path, bytes.substr(0, size));
        const std::string text = refused(path);
        accepted += text.empty();
        without_path += !mentions(text, {path});
    }
    CHECK(accepted == 0);
    CHECK(without_path == 0);
    write_bytes(path, bytes + '\0');
    CHECK(mentions(refused(path), {path, "damaged"}));
    write_bytes(path, bytes);
    CHECK(refused(path).empty());
}

TEST_CASE("a file with any bit flipped is refused") {
    const scratch_folder folder;
    const auto path = folder.file("a");
    small_checkpoint().write(path);
    const std::string bytes = bytes_of(path);
    std::size_t accepted = 0;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        std::string damaged = bytes;
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
        write_bytes(path, damaged);
        accepted += refused(path).empty();
    }
    CHECK(accepted == 0);
}

TEST_CASE("a file of another kind or version says what it is not") {
    const scratch_folder folder;
    const auto path = folder.file("a");
    write_bytes(path, "");
    CHECK(mentions(refused(path), {path, "not a demi checkpoint"}));
    write_bytes(path, "PK\003\004 a zip file, as many frameworks write");
    CHECK(mentions(refused(path), {path, "not a demi checkpoint"}));

    small_checkpoint().write(path);
    std::string bytes = bytes_of(path);
    bytes[std::strlen("demi checkpoint\n")] = 2;
    write_bytes(path, bytes);
    CHECK(mentions(refused(path), {path, "version 2", "expected 1"}));

    CHECK(mentions(refused(folder.file("missing")), {"missing", "cannot read", "No such file"}));
    CHECK(mentions(refused(folder.path.string()), {"cannot read", "directory"}));
}

TEST_CASE("a file that cannot be written is an error that names it, and leaves the former one") {
    const scratch_folder folder;
    const auto made = small_checkpoint();
    const auto failed = [&](const std::string& path) {
        return message_of<demi::error>([&] { made.write(path); });
    };
    const auto nowhere = folder.file("no/such/folder");
    CHECK(mentions(failed(nowhere), {"cannot write", nowhere}));
    CHECK(mentions(failed(folder.path.string()), {"cannot write"}));

    const auto path = folder.file("a");
    made.write(path);
    const std::string before = bytes_of(path);
    std::filesystem::create_directory(path + ".unfinished");
    demi::checkpoint newer = small_checkpoint();
    newer.store("step", std::uint64_t{42});
    CHECK(mentions(message_of<demi::error>([&] { newer.write(path); }), {"cannot write", path}));
    CHECK(bytes_of(path) == before);
    std::filesystem::remove(path + ".unfinished");
    newer.write(path);
    CHECK(demi::checkpoint::read(path).load<std::uint64_t>("step") == 42);
    CHECK_FALSE(std::filesystem::exists(path + ".unfinished"));

    // A device that is always full.
    if (std::filesystem::exists("/dev/full")) {
        std::filesystem::create_symlink("/dev/full", path + ".unfinished");
        CHECK(mentions(failed(path), {"cannot write", "No space left"}));
        CHECK(demi::checkpoint::read(path).load<std::uint64_t>("step") == 42);
    }
}

TEST_CASE("equal contents give equal files") {
    const scratch_folder folder;
    demi::checkpoint forward, backward;
    forward.store("a", 1);
    forward.store("b", 2);
    backward.store("b", 2);
    backward.store("a", 1);
    forward.write(folder.file("forward"));
    backward.write(folder.file("backward"));
    CHECK(bytes_of(folder.file("forward")) == bytes_of(folder.file("backward")));
}
