// The invitation of motley launch --invite: prints a ticket, waits for the machines and adds them
// to the cluster.
#pragma once

#include <memory>

#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cluster/join/head/join_head.h"
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

}  // namespace motley
