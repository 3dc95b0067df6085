// Short commands on machines, run on all of them at once as a worker would be started there, and
// what they said, whatever the shells there print beside it (cluster/reach/framed_answer.h).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/cluster.h"

namespace motley {

// Longer than ssh takes to a machine that is there, shorter than it waits for one that is off.
inline constexpr double kAnswer_s = 15;

struct MachineQuestion {
  const Machine* machine = nullptr;
  std::vector<std::string> command;
};

struct MachineAnswer {
  std::string trouble;  // why the command did not run to its end there; empty when it did
  int status = 0;       // its exit status
  std::string said;     // its standard output
  std::string words;    // the last line of its standard error, or of what failed before it
};

// One answer a question, in their order. What goes wrong with a machine is in its answer;
// kInterrupted and kTerminated are errors, and kInternal where the system gives no random bytes.
// REQUIRES: the machines outlive the call.
[[nodiscard]] Result<std::vector<MachineAnswer>> ask_machines(
    const std::vector<MachineQuestion>& questions, double answer_s);

}  // namespace motley
