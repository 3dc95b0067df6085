// How many processor cores' worth of time this process can get, and of which kind.
#pragma once

#include <filesystem>
#include <string>

namespace motley {

// Cores that are on line, that this process may run on, and that its control groups grant it: the
// least of these, e.g. 1.5.
[[nodiscard]] double usable_cores();

// The least quota of the process's control groups, as least_group_limit(); infinity without one.
[[nodiscard]] double control_group_cores(const std::filesystem::path& own_groups,
                                         const std::filesystem::path& top);

// Which processor this is, in the system's words: all that tells models apart there. Empty when it
// does not tell.
[[nodiscard]] std::string processor_model();

}  // namespace motley
