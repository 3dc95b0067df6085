// What a run is expected to do, left in its folder for who watches it.
#pragma once

#include "base/log.h"
#include "cluster/run/prepare.h"
#include "partitioner/search/planner.h"

namespace motley {

// Writes prediction.json and, where the devices were measured, a step as it is simulated. Nobody
// trains by them: what cannot be predicted or written is left out, and the run goes on.
void leave_prediction(const PreparedRun& run, const PlanOptions& options, const Log& log);

}  // namespace motley
