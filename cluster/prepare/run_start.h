// The state in which a launch starts: that of the checkpoint to resume, or the initial one.
#pragma once

#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "cluster/prepare/check_request.h"
#include "cluster/prepare/find_shards.h"
#include "cluster/prepare/resumed_plan.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/training_request.h"
#include "partitioner/report/planning_input.h"
#include "run_config/config.h"

namespace motley {

struct RunStart {
  Config config;           // of a resumed run: with its own choices for values left open
  PlanningInput planning;  // by this configuration
  StepRange steps;
  // The data from which the steps were counted, if the length is given in epochs.
  std::optional<DataIdentity> counted_data = {};
  std::optional<ResumedCheckpoint> resumed;  // nullopt = the run begins
  std::optional<SavedPlanning> saved;        // of the resumed checkpoint
};

// Verifies the checkpoint to resume, and checks that it is the same run and that steps are left.
// Changes that the request allows are logged. kConfig for other changes, and as check_resume(),
// RunFolder::newest_checkpoint() and plan_options(); kData if the data is not the run's; kUsage if
// the step to stop after is in the past.
[[nodiscard]] Result<RunStart> start_of_run(const TrainingRequest& request,
                                            const CheckedRequest& checked,
                                            const FoundShards& found,
                                            const Log& log);

}  // namespace motley
