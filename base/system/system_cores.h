// How many processor cores' worth of time this process can get.
#pragma once

#include <filesystem>

namespace motley {

// Cores that are on line, that this process may run on, and that its control groups grant it: the
// least of these, e.g. 1.5.
[[nodiscard]] double usable_cores();

// The least quota of the process's control groups, as least_group_limit(); infinity without one.
[[nodiscard]] double control_group_cores(const std::filesystem::path& own_groups,
                                         const std::filesystem::path& top);

}  // namespace motley
