// Limits of a Linux process's control groups: its own group and all ancestors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

namespace motley {

inline constexpr std::int64_t kNoGroupLimit = std::numeric_limits<std::int64_t>::max();

// Reads one limit from a group's folder; kNoGroupLimit if the group has none.
using ReadGroupLimit = std::int64_t (*)(const std::filesystem::path& group);

// The smallest limit of any group on the path from the process's own to the root. Supports versions
// 1, 2 and both at once. `own_groups` is a file like /proc/self/cgroup, `top` a folder like
// /sys/fs/cgroup; `controller` is the name in version 1. kNoGroupLimit if there is no limit or no
// control groups.
[[nodiscard]] std::int64_t least_group_limit(const std::filesystem::path& own_groups,
                                             const std::filesystem::path& top,
                                             const std::string& controller,
                                             ReadGroupLimit read_v1,
                                             ReadGroupLimit read_v2);

// Reads a file that holds one number; returns `otherwise` if it is unreadable or not a number
// ("max").
[[nodiscard]] std::int64_t group_number(const std::filesystem::path& path, std::int64_t otherwise);

}  // namespace motley
