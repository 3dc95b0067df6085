// The machines that a scheduler or mpirun gives to a program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

struct AllocatedMachine {
  std::string host;
  std::vector<std::string> shell;  // the prefix of a command there; empty = ssh
  double memory_gib = 0;           // granted there; 0 = not limited, or not known
  bool is_here = false;            // by the scheduler's own name of this machine
};

// A variable's value; "" if it is not set.
using Environment = std::function<std::string(const char* name)>;

// `source`: "slurm" (the job's nodes, started by srun), "pbs", "lsf", "sge" (the host file that the
// environment names) or the path of a host file; the hosts of files are reached by ssh. kUsage if
// there is no such source, kConfig if it describes no machines.
[[nodiscard]] Result<std::vector<AllocatedMachine>> allocated_machines(
    const std::string& source, const Environment& environment);

}  // namespace motley
