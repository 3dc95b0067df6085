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

// The processes that share a machine's cores.
struct CoreSharers {
  int computing = 0;  // that compute with the cores themselves
  int serving = 0;    // that compute on a device of its own, for which one core starts operations

  bool operator==(const CoreSharers&) const = default;
};

// How many threads one of them is to have where nobody says otherwise, of that many physical cores,
// of which all of them can get `usable` cores' worth of time: one that serves a device has one
// beside any that compute, and these have equal shares of the rest.
[[nodiscard]] int threads_of_one(const CoreSharers& sharers,
                                 bool is_serving,
                                 int physical,
                                 double usable);

// The same for this process on this machine.
[[nodiscard]] int default_threads(const CoreSharers& sharers, bool is_serving);

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
