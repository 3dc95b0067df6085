// The number of processor cores that this process can use, and their model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace motley {

// The minimum of the cores that are online, those that this process may run on, and the quota of
// its control groups, e.g. 1.5.
[[nodiscard]] double usable_cores();

// Physical cores among the processors that this process may run on; hardware threads of one core
// count once. `top` is /sys/devices/system/cpu; without data there, each processor is a core.
[[nodiscard]] int physical_cores(const std::filesystem::path& top,
                                 const std::vector<int>& processors);

// The same for this machine and this process.
[[nodiscard]] int physical_cores();

// The processes that share a machine's cores.
struct CoreSharers {
  int computing = 0;  // compute on the cores themselves
  int serving = 0;    // compute on a separate device, and use one core to start its operations

  bool operator==(const CoreSharers&) const = default;
};

// The default number of threads of one process, given the machine's `physical` cores, of which all
// sharers together can use `usable`. A serving process has one core beside computing ones; these
// share the rest equally.
[[nodiscard]] int threads_of_one(const CoreSharers& sharers,
                                 bool is_serving,
                                 int physical,
                                 double usable);

// The same for this process on this machine, of which it may use `cpu_share` cores; 0 = all.
[[nodiscard]] int default_threads(const CoreSharers& sharers, bool is_serving, double cpu_share);

// Lowers the calling thread's priority: it gets about a tenth of a contended core, and all of an
// idle one. Does nothing if the system has no per-thread priorities.
void yield_cores();

// The smallest quota of the process's control groups, as least_group_limit(); infinity if none.
[[nodiscard]] double control_group_cores(const std::filesystem::path& own_groups,
                                         const std::filesystem::path& top);

// The system's description of the processor: all fields that distinguish models. Empty if unknown.
[[nodiscard]] std::string processor_model();
// The vendor's name: "AMD EPYC 9354". Empty if the system does not report it, as on ARM.
[[nodiscard]] std::string processor_name();

}  // namespace motley
