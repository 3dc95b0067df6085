// Prepares a run from the user's request: all input errors are found here, before a process is
// started for long or a file of an earlier run is changed. Each step makes one value, from which
// the later ones read:
//
//   check_request   CheckedRequest   what to plan for, on which machines, from which data
//   claim_folder    ClaimedFolder    the run folder and its lock
//   find_shards     FoundShards      the machines' own folders, and the checkpoint that they hold
//   start_of_run    RunStart         the checkpoint to resume, the run's own choices, the steps
//   plan_run        PlannedRun       devices, profile, plan, transport
//   deliver_shards  RunShards        the folders from which the ranks resume
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/training_request.h"

namespace motley {

// Checks the config, the plan or the planning request, and the data; locks the run folder for this
// launch (kPeer if another launcher uses it); and checks that every machine is usable. Only then
// measures devices if necessary, plans, and writes config.toml, plan.json and profile.json. Once
// the folder is locked, `log` is also written to it. A dry run neither locks nor changes the
// folder.
[[nodiscard]] Result<Launch> prepare_run(const TrainingRequest& request, Log& log);

}  // namespace motley
