// How many processor cores' worth of time this process can get, and of which kind.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace motley {

// Cores that are on line, that this process may run on, and that its control groups grant it: the
// least of these, e.g. 1.5.
[[nodiscard]] double usable_cores();

// Physical cores among the processors that this process may run on; hardware threads of one core
// count once. `top` is /sys/devices/system/cpu; where it tells nothing, each processor is a core.
[[nodiscard]] int physical_cores(const std::filesystem::path& top,
                                 const std::vector<int>& processors);

// The same of this machine and this process.
[[nodiscard]] int physical_cores();

// How many threads each of so many processes is to compute with, where nobody says otherwise: their
// share of that many physical cores, of which they can get `usable` cores' worth of time.
[[nodiscard]] int threads_of_each(int processes, int physical, double usable);

// The same on this machine, for this process and its like.
[[nodiscard]] int default_threads(int processes);

// From here on the calling thread gets about a tenth of a core that other threads want, and all of
// one that nobody wants. Where the system has no such priority of a thread nothing changes.
void leave_cores_to_others();

// The least quota of the process's control groups, as least_group_limit(); infinity without one.
[[nodiscard]] double control_group_cores(const std::filesystem::path& own_groups,
                                         const std::filesystem::path& top);

// Which processor this is, in the system's words: all that tells models apart there. Empty when it
// does not tell.
[[nodiscard]] std::string processor_model();
// What its maker calls it: "AMD EPYC 9354". Empty where the system does not tell, as on ARM.
[[nodiscard]] std::string processor_name();

}  // namespace motley
