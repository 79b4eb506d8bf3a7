// SPDX-License-Identifier: MIT
#include <demi/batching/host_memory.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <support/catch.hpp>

namespace {

constexpr std::size_t gib = std::size_t{1} << 30;

/// A root directory with files of our own, removed at the end.
class fake_root {
public:
    fake_root() {
        std::random_device random;
        path_ = std::filesystem::temp_directory_path() /
                ("demi_host_memory_" + std::to_string(random()) + std::to_string(random()));
        write("/proc/meminfo",
              "MemTotal:       67108864 kB\nMemFree:        41943040 kB\n"
              "MemAvailable:   50331648 kB\n");
        write("/proc/self/cgroup", "0::/\n");
        write("/proc/self/mountinfo",
              "22 1 0:5 / /proc rw - proc proc rw\n"
              "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
    }
    fake_root(const fake_root&) = delete;
    fake_root& operator=(const fake_root&) = delete;
    ~fake_root() { std::filesystem::remove_all(path_); }

    void write(const std::string& name, const std::string& text) const {
        const std::filesystem::path file = path_.string() + name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary) << text;
    }

    void write(const std::string& name, std::size_t number) const {
        write(name, std::to_string(number) + "\n");
    }

    void remove(const std::string& name) const { std::filesystem::remove(path_.string() + name); }

    demi::host_memory_reading read(const demi::host_memory_settings& settings = {}) const {
        return demi::host_memory(path_.string(), settings).read();
    }

    std::size_t margin() const { return demi::host_memory(path_.string()).suggested_margin(); }

    std::string error_text() const {
        try {
            static_cast<void>(read());
        } catch (const demi::error& failure) {
            return failure.what();
        }
        return "nothing was thrown";
    }

private:
    std::filesystem::path path_;
};

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("Without limits free memory is MemAvailable, not MemFree (P44)") {
    const fake_root root;
    const auto reading = root.read();
    CHECK(reading.free == 48 * gib);
    CHECK(reading.total == 64 * gib);
    CHECK(reading.limited_by == "/proc/meminfo");
}

TEST_CASE("Old kernels without MemAvailable are estimated from what they have") {
    const fake_root root;
    root.write("/proc/meminfo",
               "MemTotal: 67108864 kB\nMemFree: 1048576 kB\nInactive(file): 2097152 kB\n"
               "SReclaimable: 1048576 kB\n");
    CHECK(root.read().free == 3 * gib + gib / 2);
}

TEST_CASE("A control group's limit counts, less its use without reclaimable cache (P70)") {
    const fake_root root;
    root.write("/proc/self/cgroup", "0::/job\n");
    root.write("/sys/fs/cgroup/job/memory.max", 32 * gib);
    root.write("/sys/fs/cgroup/job/memory.current", 30 * gib);
    root.write("/sys/fs/cgroup/job/memory.stat", "anon 4294967296\ninactive_file " +
                                                     std::to_string(22 * gib) + "\nactive_file " +
                                                     std::to_string(4 * gib) + "\n");
    const auto reading = root.read();
    CHECK(reading.free == 24 * gib);
    CHECK(reading.total == 32 * gib);
    CHECK(reading.limited_by == "/sys/fs/cgroup/job/memory.max");
    CHECK(root.read({.active_file_is_free = true}).free == 28 * gib);

    root.write("/sys/fs/cgroup/job/memory.stat", "inactive_file " + std::to_string(22 * gib) +
                                                     "\nslab_reclaimable " + std::to_string(gib) +
                                                     "\n");
    CHECK(root.read().free == 25 * gib);
}

TEST_CASE("The smallest room on the way to the root counts") {
    const fake_root root;
    root.write("/proc/self/cgroup", "0::/outer/inner\n");
    root.write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
    root.write("/sys/fs/cgroup/outer/inner/memory.current", gib);
    root.write("/sys/fs/cgroup/outer/memory.max", 8 * gib);
    root.write("/sys/fs/cgroup/outer/memory.current", 5 * gib);
    const auto reading = root.read();
    CHECK(reading.free == 3 * gib);
    CHECK(reading.limited_by == "/sys/fs/cgroup/outer/memory.max");
}

TEST_CASE("A namespaced container reads the root of its mount") {
    const fake_root root;
    root.write("/sys/fs/cgroup/memory.max", 2 * gib);
    root.write("/sys/fs/cgroup/memory.current", gib);
    for (const char* own : {"0::/\n", "0::/../../elsewhere\n", "0::/not/visible/here\n"}) {
        root.write("/proc/self/cgroup", own);
        CAPTURE(own);
        CHECK(root.read().free == gib);
    }
}

TEST_CASE("A mount of part of the hierarchy is seen from its own root") {
    const fake_root root;
    root.write("/proc/self/mountinfo",
               "30 23 0:26 /box /cg rw shared:4 master:1 - cgroup2 cgroup2 rw\n");
    root.write("/proc/self/cgroup", "0::/box/job\n");
    root.write("/cg/job/memory.max", 2 * gib);
    root.write("/cg/job/memory.current", gib);
    CHECK(root.read().limited_by == "/cg/job/memory.max");
    root.write("/proc/self/cgroup", "0::/boxer/job\n");
    root.write("/cger/job/memory.max", 1);
    root.write("/cger/job/memory.current", 1);
    CHECK(root.read().limited_by == "/proc/meminfo");
}

TEST_CASE("memory.high counts when it is asked for") {
    const fake_root root;
    root.write("/sys/fs/cgroup/memory.max", 8 * gib);
    root.write("/sys/fs/cgroup/memory.high", 4 * gib);
    root.write("/sys/fs/cgroup/memory.current", gib);
    CHECK(root.read().free == 7 * gib);
    CHECK(root.read({.respect_high = true}).free == 3 * gib);
    CHECK(root.read({.respect_high = true}).limited_by == "/sys/fs/cgroup/memory.high");
}

TEST_CASE("Use beyond the limit leaves nothing, and cache beyond use counts as none used") {
    const fake_root root;
    root.write("/sys/fs/cgroup/memory.max", gib);
    root.write("/sys/fs/cgroup/memory.current", 2 * gib);
    CHECK(root.read().free == 0);
    root.write("/sys/fs/cgroup/memory.stat", "inactive_file " + std::to_string(3 * gib) + "\n");
    CHECK(root.read().free == gib);
}

TEST_CASE("Version 1 control groups are read by their own names") {
    const fake_root root;
    root.write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory,hugetlb:/job\n0::/\n");
    root.write("/proc/self/mountinfo",
               "33 31 0:30 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
               "35 31 0:32 / /cg/mem rw - cgroup cgroup rw,memory\n");
    root.write("/cg/mem/memory.limit_in_bytes", std::size_t{9223372036854771712u});
    root.write("/cg/mem/memory.usage_in_bytes", 60 * gib);
    root.write("/cg/mem/job/memory.limit_in_bytes", 4 * gib);
    root.write("/cg/mem/job/memory.usage_in_bytes", 3 * gib);
    root.write("/cg/mem/job/memory.stat",
               "inactive_file 1\ntotal_inactive_file " + std::to_string(gib) + "\n");
    const auto reading = root.read();
    CHECK(reading.free == 2 * gib);
    CHECK(reading.total == 4 * gib);
    CHECK(reading.limited_by == "/cg/mem/job/memory.limit_in_bytes");
}

TEST_CASE("Without a mount table the usual places are read") {
    const fake_root root;
    root.remove("/proc/self/mountinfo");
    root.remove("/proc/self/cgroup");
    root.write("/sys/fs/cgroup/memory.max", 2 * gib);
    root.write("/sys/fs/cgroup/memory.current", gib);
    CHECK(root.read().free == gib);
}

TEST_CASE("Files that are missing or do not hold numbers are named") {
    const fake_root root;
    root.write("/sys/fs/cgroup/memory.max", "plenty\n");
    CHECK(contains(root.error_text(), "/sys/fs/cgroup/memory.max holds 'plenty'"));
    root.write("/sys/fs/cgroup/memory.max", 2 * gib);
    CHECK(contains(root.error_text(), "/sys/fs/cgroup/memory.current"));
    root.write("/sys/fs/cgroup/memory.current", "12 34\n");
    CHECK(contains(root.error_text(), "holds '12 34'"));
    root.write("/sys/fs/cgroup/memory.current", "\n");
    CHECK(contains(root.error_text(), "holds ''"));
    root.write("/sys/fs/cgroup/memory.current", "99999999999999999999999\n");
    CHECK(contains(root.error_text(), "holds '99999999999999999999999'"));

    root.write("/sys/fs/cgroup/memory.current", gib);
    root.write("/proc/meminfo", "MemAvailable: 1 kB\n");
    CHECK(contains(root.error_text(), "has no MemTotal:"));
    root.write("/proc/meminfo", "MemTotal: 5 kB\nMemAvailable:\n");
    CHECK(contains(root.error_text(), "/proc/meminfo holds ''"));
    root.remove("/proc/meminfo");
    CHECK(contains(root.error_text(), "/proc/meminfo is missing"));
}

TEST_CASE("The suggested margin is a twentieth, at most one gibibyte") {
    const fake_root root;
    CHECK(root.margin() == gib);
    root.write("/proc/meminfo", "MemTotal: 2000 kB\nMemAvailable: 500 kB\n");
    CHECK(root.margin() == 102400);
}

#if defined(__linux__)
TEST_CASE("This machine's own files can be read") {
    const demi::host_memory memory;
    const auto reading = memory.read();
    CHECK(reading.total > 0);
    CHECK(reading.free <= reading.total);
    CHECK_FALSE(reading.limited_by.empty());
    CHECK(memory.suggested_margin() <= gib);
}
#endif
