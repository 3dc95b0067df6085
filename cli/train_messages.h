// The output of `motley train`: the plan of a dry run, and the summary of a run.
#pragma once

#include "base/json.h"
#include "cluster/run/prepare.h"
#include "cluster/run/training_run.h"

namespace motley {

// What a run would start, for a dry run.
void print_intention(const PreparedRun& run, const TrainingRequest& request);
[[nodiscard]] Json intention_to_json(const PreparedRun& run, const TrainingRequest& request);

// How a run ended, and its results.
void print_summary(const PreparedRun& run, const TrainingSummary& summary);

}  // namespace motley
