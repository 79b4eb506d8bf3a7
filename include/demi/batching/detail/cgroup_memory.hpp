// SPDX-License-Identifier: MIT
/// The room that each control group above this process leaves.
#pragma once

#include <demi/batching/detail/system_file.hpp>
#include <demi/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace demi::inline DEMI_ABI {

namespace detail {

struct cgroup_options {
    bool respect_high = false;
    bool active_file_is_free = false;
};

/// What one limit file of one group says.
struct cgroup_room {
    std::string file;
    std::size_t limit = 0;
    std::size_t free = 0;
};

/// The file names of one version of control groups; empty where the version has none.
struct cgroup_names {
    std::string_view file_system;
    std::string_view usual_mount;
    std::string_view maximum;
    std::string_view high;
    std::string_view usage;
    std::string_view inactive_file;
    std::string_view active_file;
    std::string_view reclaimable_slab;
};

inline constexpr cgroup_names cgroup_version_2{"cgroup2",     "/sys/fs/cgroup",  "memory.max",
                                               "memory.high", "memory.current",  "inactive_file",
                                               "active_file", "slab_reclaimable"};

inline constexpr cgroup_names cgroup_version_1{"cgroup",
                                               "/sys/fs/cgroup/memory",
                                               "memory.limit_in_bytes",
                                               "",
                                               "memory.usage_in_bytes",
                                               "total_inactive_file",
                                               "total_active_file",
                                               ""};

struct cgroup_mount {
    std::string root = "/";
    std::string point;
};

inline bool has_word(std::string_view list, std::string_view word) {
    const auto words = split_words(list, ',');
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// Where the hierarchy that accounts for memory is mounted, and which group is the mount's root.
inline cgroup_mount find_cgroup_mount(const std::string& root, const cgroup_names& names) {
    const system_file mounts(root, "/proc/self/mountinfo");
    for (const std::string_view line : mounts.lines()) {
        const auto words = split_words(line, ' ');
        const auto dash = std::find(words.begin(), words.end(), std::string_view("-"));
        if (words.size() < 5 || words.end() - dash < 4 || dash[1] != names.file_system) continue;
        if (names.file_system == "cgroup" && !has_word(dash[3], "memory")) continue;
        return {std::string(words[3]), std::string(words[4])};
    }
    return {"/", std::string(names.usual_mount)};
}

/// The own group, as a path below the mount: empty for the mount's root, which is also what a
/// process sees that cannot look outside its namespace.
inline std::string own_cgroup(const std::string& root, const cgroup_names& names,
                              std::string_view mount_root) {
    const system_file groups(root, "/proc/self/cgroup");
    for (const std::string_view line : groups.lines()) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == line.npos || second == line.npos) continue;
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        const bool is_version_2 = controllers.empty();
        if (is_version_2 != (names.file_system == "cgroup2")) continue;
        if (!is_version_2 && !has_word(controllers, "memory")) continue;
        std::string_view path = line.substr(second + 1);
        if (mount_root != "/") {
            const std::string_view rest = path.substr(std::min(path.size(), mount_root.size()));
            const bool below = path.substr(0, mount_root.size()) == mount_root &&
                               (rest.empty() || rest.front() == '/');
            path.remove_prefix(below ? mount_root.size() : path.size());
        }
        if (path.find("/..") != path.npos || path == "/") return {};
        return std::string(path);
    }
    return {};
}

/// The bytes in use that the kernel would not give up first.
inline std::size_t cgroup_usage(const std::string& root, const std::string& group,
                                const cgroup_names& names, const cgroup_options& options) {
    const system_file usage(root, group + "/" + std::string(names.usage));
    const system_file statistics(root, group + "/memory.stat");
    std::size_t reclaimable = statistics.find(names.inactive_file).value_or(0);
    if (!names.reclaimable_slab.empty()) {
        reclaimable += statistics.find(names.reclaimable_slab).value_or(0);
    }
    if (options.active_file_is_free) {
        reclaimable += statistics.find(names.active_file).value_or(0);
    }
    const std::size_t used = usage.number();
    return used - std::min(used, reclaimable);
}

template <class Visitor>
void visit_cgroup(const std::string& root, const std::string& group, const cgroup_names& names,
                  const cgroup_options& options, Visitor& visit) {
    for (const std::string_view name : {names.maximum, names.high}) {
        if (name.empty() || (name == names.high && !options.respect_high)) continue;
        const system_file file(root, group + "/" + std::string(name));
        if (!file.exists() || file.word() == "max") continue;
        const std::size_t limit = file.number();
        const std::size_t used = cgroup_usage(root, group, names, options);
        visit(cgroup_room{file.path(), limit, limit - std::min(limit, used)});
    }
}

/// Calls `visit` for each limit of the own group and of each group above it, up to the mount.
template <class Visitor>
void visit_cgroups(const std::string& root, const cgroup_options& options, Visitor visit) {
    for (const cgroup_names& names : {cgroup_version_2, cgroup_version_1}) {
        const cgroup_mount mount = find_cgroup_mount(root, names);
        std::string group = own_cgroup(root, names, mount.root);
        while (!group.empty()) {
            visit_cgroup(root, mount.point + group, names, options, visit);
            group.resize(group.rfind('/') == group.npos ? 0 : group.rfind('/'));
        }
        visit_cgroup(root, mount.point, names, options, visit);
    }
}

}  // namespace detail

}  // namespace demi::inline DEMI_ABI
