// The invitation of motley launch --invite: prints a ticket, waits for the machines and adds them
// to the cluster.
#pragma once

#include <memory>
#include <vector>

#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cluster/join/head/join_head.h"
#include "cluster/run/training_request.h"
#include "plan/cluster.h"

namespace motley {

// --invite, --listen and --valid.
[[nodiscard]] std::vector<OptionSpec> invite_options();

struct Invitation {
  std::unique_ptr<JoinHead> head;  // holds the machines' connections; must live as long as the run
  Cluster cluster;
};

// `cluster`: that of the cluster file, or this machine alone. `output`: receives lines about
// machines that join, leave and come back, from another thread. Waits until as many machines have
// joined as
// --invite says. kUsage for wrong options; kPeer if the ticket expires first; kInterrupted and
// kTerminated. REQUIRES: arguments.has("invite").
[[nodiscard]] Result<Invitation> invite_machines(const Arguments& arguments,
                                                 Cluster cluster,
                                                 ProgressLine& line,
                                                 const Log::Output& output);

// Collects the run's newest checkpoint in the run's folder here: the machines that have joined
// leave with the run, and their parts with them. Logs a warning if that fails.
void gather_from_joined(const TrainingRequest& request, ProgressLine& line, const Log& log);

}  // namespace motley
