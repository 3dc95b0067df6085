// The output of `motley train`: the plan of a dry run, and the summary of a run.
#pragma once

#include "base/json.h"
#include "cluster/run/ready_run.h"
#include "cluster/run/training_request.h"
#include "cluster/run/training_run.h"

namespace motley {

// What a run would start, for a dry run.
void print_intention(const ReadyRun& run, const TrainingRequest& request);
[[nodiscard]] Json intention_to_json(const ReadyRun& run);

// How a run ended, and its results.
void print_summary(const ReadyRun& run, const TrainingSummary& summary);

}  // namespace motley
