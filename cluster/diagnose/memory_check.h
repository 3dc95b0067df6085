// Checks that the devices of a cluster can hold a model, before profiling.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

// The memory of a machine, or of a device with its own memory.
struct MachineMemory {
  std::string name;         // in messages
  double bytes = 0;         // usable by a plan
  double free_bytes = 0;    // free
  bool is_granted = false;  // `bytes` is the cluster file's memory_gib
  bool is_measured = true;  // otherwise only the cluster file limits it
};

// kInfeasible if all of it together is less than `least_bytes`: names the memory of each, the
// deficit, and which memory_gib of the cluster file would have to be raised.
[[nodiscard]] std::optional<Error> memory_problem(const std::vector<MachineMemory>& all,
                                                  double least_bytes);

}  // namespace motley
