// Resumes a run during its preparation: finds the checkpoint and checks that it is the same run.
#pragma once

#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "cluster/run/distributed_checkpoint.h"
#include "cluster/run/prepare.h"
#include "cluster/run/resumed_plan.h"
#include "data/source.h"

namespace motley {

// Whether the run resumes from a checkpoint. A run that ended before its first checkpoint starts
// again from step 1, even if --resume is given. If checkpoints may be distributed this is not known
// yet, and the result is true.
[[nodiscard]] Result<bool> is_resume(const TrainingRequest& request,
                                     const RunFolder& folder,
                                     const RunMachines& machines);

// The same for distributed checkpoints, by find_shards(), with its errors. False, with the folder
// prepared for a new run, if no machine has a checkpoint of a run that was started. REQUIRES: those
// of find_shards().
[[nodiscard]] Result<bool> look_for_checkpoint(PreparedRun& run,
                                               const TrainingRequest& request,
                                               const RunMachines& machines,
                                               const Log& log);

// Sets the point to resume from (run.resume_from, first_step, saved_data) after checking that it is
// the same run, and the run's own choices (run.config, run.cluster). `data`: the data read here, if
// known. kConfig for changes that are not allowed, and as check_resume(); kData if the data is not
// the run's.
[[nodiscard]] Result<SavedPlanning> resume(PreparedRun& run,
                                           const std::optional<DataIdentity>& data,
                                           const TrainingRequest& request,
                                           const Log& log);

}  // namespace motley
