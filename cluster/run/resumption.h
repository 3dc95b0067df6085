// Resuming a run that is being prepared: whether there is something to go on from, where that lies,
// and that it is the same run.
#pragma once

#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "cluster/run/distributed_checkpoint.h"
#include "cluster/run/prepare.h"
#include "cluster/run/resumed_plan.h"
#include "data/source.h"

namespace motley {

// Whether there is something to go on from. A run that ended before its first checkpoint begins
// anew, whether it is asked to resume or not. Where parts of checkpoints may lie on machines, that
// is not known yet, and true stands for it.
[[nodiscard]] Result<bool> goes_on(const TrainingRequest& request,
                                   const RunFolder& folder,
                                   const RunMachines& machines);

// What goes_on() could not know: look_for_parts(), with its errors, tells. False, and the folder
// made for a new run, where no machine knows of a checkpoint of a run that has begun. REQUIRES:
// those of look_for_parts().
[[nodiscard]] Result<bool> look_for_checkpoint(PreparedRun& run,
                                               const TrainingRequest& request,
                                               const RunMachines& machines,
                                               const Log& log);

// Where the run goes on (run.resume_from, first_step, saved_data), once everything shows that it is
// the same run, and with what it chose (run.config, run.cluster). `data`: what is read here, where
// that is known. kConfig for changes that nobody allowed, and as check_resume(); kData where the
// data is not the run's.
[[nodiscard]] Result<SavedPlanning> resume(PreparedRun& run,
                                           const std::optional<DataIdentity>& data,
                                           const TrainingRequest& request,
                                           const Log& log);

}  // namespace motley
