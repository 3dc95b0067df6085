// Writes the prediction of a run to its folder, for monitoring.
#pragma once

#include "base/log.h"
#include "cluster/run/ready_run.h"
#include "partitioner/search/planner.h"
#include "record/run_folder.h"

namespace motley {

// Writes prediction.json and, if the devices were measured, the trace of a simulated step. Training
// does not use them: a part that cannot be predicted or written is left out, and the run continues.
void write_prediction(const PlannedRun& run,
                      const PlanOptions& options,
                      const RunFolder& folder,
                      const Log& log);

}  // namespace motley
