// SPDX-License-Identifier: MIT
/// How much host memory this process can still take, containers included.
#pragma once

#include <demi/batching/detail/cgroup_memory.hpp>
#include <demi/batching/detail/system_file.hpp>
#include <demi/batching/memory_probe.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace demi::inline DEMI_ABI {

struct host_memory_settings {
    /// Also stay below `memory.high`, where the kernel slows a group down instead of killing it.
    bool respect_high = false;
    /// Count recently used file cache as free, as the kernel's `MemAvailable` partly does.
    /// Container managers count it as used.
    bool active_file_is_free = false;
};

/// Where a reading of host memory comes from.
struct host_memory_reading {
    std::size_t free = 0;
    std::size_t total = 0;
    /// The file with the smallest room: `/proc/meminfo`, or the limit of a control group.
    std::string limited_by;
};

/// Host memory on Linux: the smallest of `MemAvailable` and what is left in each control group
/// (version 2 and version 1) from this process' own up to the root. Swap is not counted.
///
/// A process that goes beyond is killed and sees no exception. So plan with measured peaks, for
/// example by `metered_probe{meter, host_memory{}}`, and never by allocating until it fails.
class host_memory {
public:
    /// `root` is put before every path, so that a test can bring its own `/proc` and `/sys`.
    explicit host_memory(std::string root = "/", const host_memory_settings& settings = {})
        : root_(std::move(root)), settings_(settings) {
        while (!root_.empty() && root_.back() == '/') root_.pop_back();
    }

    /// Reads the system's files. Throws `error` when one is missing that has to be there, or when
    /// a file does not hold what it should.
    host_memory_reading read() const {
        const detail::system_file meminfo(root_, "/proc/meminfo");
        host_memory_reading reading{available(meminfo), meminfo.required("MemTotal:") * 1024,
                                    meminfo.path()};
        const detail::cgroup_options options{settings_.respect_high, settings_.active_file_is_free};
        detail::visit_cgroups(root_, options, [&](const detail::cgroup_room& room) {
            reading.total = std::min(reading.total, room.limit);
            if (room.free >= reading.free) return;
            reading.free = room.free;
            reading.limited_by = room.file;
        });
        return reading;
    }

    std::size_t free_bytes() const { return read().free; }
    std::size_t total_bytes() const { return read().total; }

    /// 5 % of the total, at most 1 GiB.
    std::size_t suggested_margin() const {
        return std::min(total_bytes() / 20, std::size_t{1} << 30);
    }

private:
    static std::size_t available(const detail::system_file& meminfo) {
        if (const auto kibibytes = meminfo.find("MemAvailable:")) return *kibibytes * 1024;
        return (meminfo.required("MemFree:") + meminfo.find("Inactive(file):").value_or(0) +
                meminfo.find("SReclaimable:").value_or(0) / 2) *
               1024;
    }

    std::string root_;
    host_memory_settings settings_;
};
static_assert(memory_probe<host_memory>);

}  // namespace demi::inline DEMI_ABI
