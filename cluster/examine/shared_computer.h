// Machines of a cluster file that are one computer in truth, as when a person tries several
// machines out on one: each finds the same memory and the same cores, which are there once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/system/system_cores.h"
#include "plan/cluster.h"

namespace motley {

// The processes of one machine.
[[nodiscard]] CoreSharers processes_of(const Machine& machine);

// Who shares the cores that a worker of the machine finds: the machine's processes, and of one that
// is started here all that are, whatever machine they stand for; with a quota of its own nobody.
[[nodiscard]] CoreSharers core_sharers(const Cluster& cluster, const Machine& machine);

// One machine as its worker found it.
struct FoundMachine {
  std::string name;
  std::string computer;       // computer_id(); "" = unknown, and then its own
  double free_bytes = 0;      // that a process there could use
  double computer_bytes = 0;  // free on the whole computer
  double granted_bytes = 0;   // what the cluster file says instead (memory_gib); 0 = nothing
};

// A computer that is several machines.
struct SharedComputer {
  std::vector<std::size_t> machines;  // indexes, ascending
  double free_bytes = 0;
  double granted_bytes = 0;  // by the cluster file, to all of them together

  [[nodiscard]] bool is_overdrawn() const { return granted_bytes > free_bytes; }
};

[[nodiscard]] std::vector<SharedComputer> shared_computers(const std::vector<FoundMachine>& found);

// What each machine may count on, [index]: what the cluster file grants it, else what is free
// there; on a shared computer an equal share of what the others were not granted.
[[nodiscard]] std::vector<double> fair_memory(const std::vector<FoundMachine>& found);

// "desk, box are one computer, and share its 21.40 GiB of free memory".
[[nodiscard]] std::string shared_memory_text(const SharedComputer& computer,
                                             const std::vector<FoundMachine>& found);

}  // namespace motley
