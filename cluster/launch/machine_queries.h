// Runs short commands on several machines in parallel, started like a worker, and returns their
// output without that of the shells (cluster/reach/framed_output.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/cluster.h"

namespace motley {

// Longer than ssh takes to reach a running machine, shorter than it waits for one that is off.
inline constexpr double kResponse_s = 15;

struct MachineQuery {
  const Machine* machine = nullptr;
  std::vector<std::string> command;
  // The same question in the words of docs/formats/join.md, for a machine that has joined by ticket
  // and runs no shell; empty = it cannot be asked.
  std::vector<std::string> order = {};
};

struct MachineResponse {
  std::string problem;  // why the command did not complete there; empty if it did
  int status = 0;       // its exit status
  std::string said;     // its standard output
  // The last line of its standard error, or of ssh's or the shell's if it never began.
  std::string words;
};

// Ends queries early: `take` returns the reason, once `fd` is readable.
struct QueryInterrupt {
  int fd = -1;
  std::function<std::optional<Error>()> take;
};

// One answer per question, in the same order. A machine's failure is part of its answer. Errors:
// kInterrupted, kTerminated, and kInternal if the system provides no random bytes. REQUIRES: the
// machines outlive the call.
[[nodiscard]] Result<std::vector<MachineResponse>> query_machines(
    const std::vector<MachineQuery>& questions, double answer_s);

// The same on a thread that does not receive the signals; the interrupt's reason is the error.
[[nodiscard]] Result<std::vector<MachineResponse>> query_machines(
    const std::vector<MachineQuery>& questions, double answer_s, const QueryInterrupt& interrupt);

}  // namespace motley
