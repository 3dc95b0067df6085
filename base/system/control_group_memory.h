// The memory that a Linux process may still allocate under the limits of its control groups.
#pragma once

#include <cstdint>
#include <filesystem>

namespace motley {

// The smallest remainder of any group on the path from the process's own to the root: its limit
// minus its use, where droppable file cache does not count as used. Supports versions 1, 2 and both
// at once. `own_groups` is a file like /proc/self/cgroup, `top` a folder like /sys/fs/cgroup. The
// maximum of the type if there is no limit or no control groups.
[[nodiscard]] std::int64_t control_group_memory_left(const std::filesystem::path& own_groups,
                                                     const std::filesystem::path& top);

}  // namespace motley
