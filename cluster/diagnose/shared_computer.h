// Machines of a cluster file that are one computer, as in a trial of several machines on one. Each
// finds the same memory and the same cores, which exist only once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/system/system_cores.h"
#include "plan/cluster.h"

namespace motley {

// The processes of one machine.
[[nodiscard]] CoreSharers processes_of(const Machine& machine);

// The processes that share the cores found by a worker of the machine: the machine's own, or for a
// machine started on this computer those of all such machines. With its own quota, the worker
// alone.
[[nodiscard]] CoreSharers core_sharers(const Cluster& cluster, const Machine& machine);

// A machine as its worker reported it.
struct FoundMachine {
  std::string name;
  std::string computer;       // computer_id(); "" = unknown, counted as separate
  double free_bytes = 0;      // usable by a process there
  double computer_bytes = 0;  // free on the whole computer
  double granted_bytes = 0;   // the cluster file's limit instead (memory_gib); 0 = none
};

// A computer that is several machines.
struct SharedComputer {
  std::vector<std::size_t> machines;  // indexes, ascending
  double free_bytes = 0;
  double granted_bytes = 0;  // by the cluster file, to all of them together

  [[nodiscard]] bool is_overcommitted() const { return granted_bytes > free_bytes; }
};

[[nodiscard]] std::vector<SharedComputer> shared_computers(const std::vector<FoundMachine>& found);

// The memory that each machine may plan with, [index]: the cluster file's limit, else the free
// memory. On a shared computer, machines without a limit divide what the limits leave, in
// proportion to the free memory they found.
[[nodiscard]] std::vector<double> memory_per_machine(const std::vector<FoundMachine>& found);

// "desk, box are one computer, and share its 21.40 GiB of free memory".
[[nodiscard]] std::string shared_memory_text(const SharedComputer& computer,
                                             const std::vector<FoundMachine>& found);

}  // namespace motley
