// What the control groups of a Linux process still let it take in memory.
#pragma once

#include <cstdint>
#include <filesystem>

namespace motley {

// The least that any group on the way from the process's own to the top has left: its limit, less
// what it uses, where files that it could drop do not count as used. Versions 1 and 2, and both at
// once. `own_groups` is a file as /proc/self/cgroup, `top` a folder as /sys/fs/cgroup. The largest
// value of the type where nothing limits it, or the system has no such groups.
[[nodiscard]] std::int64_t control_group_memory_left(const std::filesystem::path& own_groups,
                                                     const std::filesystem::path& top);

}  // namespace motley
