// What the control groups of a Linux process limit, over the group it is in and all above it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

namespace motley {

inline constexpr std::int64_t kNoGroupLimit = std::numeric_limits<std::int64_t>::max();

// Reads one limit from the folder of a group; kNoGroupLimit where the group has none.
using ReadGroupLimit = std::int64_t (*)(const std::filesystem::path& group);

// The least limit that any group sets on the way from the process's own to the top. Versions 1 and
// 2, and both at once. `own_groups` is a file as /proc/self/cgroup, `top` a folder as
// /sys/fs/cgroup; `controller` is version 1's name. kNoGroupLimit where nothing limits it, or the
// system has no such groups.
[[nodiscard]] std::int64_t least_group_limit(const std::filesystem::path& own_groups,
                                             const std::filesystem::path& top,
                                             const std::string& controller,
                                             ReadGroupLimit read_v1,
                                             ReadGroupLimit read_v2);

// A file that holds one number; `otherwise` where it cannot be read or holds none, as "max".
[[nodiscard]] std::int64_t group_number(const std::filesystem::path& path, std::int64_t otherwise);

}  // namespace motley
