// The processes that a launcher of processes (torchrun, mpirun, srun, an indexed Job of Kubernetes)
// has started, by the variables that it gives each of them. A pure function of the environment.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cli/init/allocation.h"

namespace motley {

struct StartedProcess {
  std::string starter;      // "torchrun", for messages
  int rank = 0;             // the number of this process
  int processes = 1;        // of all machines; the machines, if the user has announced those
  int local_rank = 0;       // its number on its machine
  int local_processes = 1;  // of its machine
  int places = 1;           // of its machine, among `processes`
  std::string head;         // host name or address of process 0; "" = not known
  std::uint16_t port = 0;   // at which the head listens if all know a secret
  std::string group;        // a text that the processes of this machine, and no others, share
};

struct StarterFacts {
  int machines = 0;      // announced by the user, with one process each; 0 = by the variables
  std::string own_host;  // the full name of this machine
};

// Which launcher started this process, the innermost one if there are several. kUsage, naming the
// variable, if none did or its variables are incomplete or contradict each other.
[[nodiscard]] Result<StartedProcess> started_process(const Environment& environment,
                                                     const StarterFacts& facts);

}  // namespace motley
