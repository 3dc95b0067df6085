// What `motley train` prints of a run: what a dry run would have started, and how a run ended.
#pragma once

#include "base/json.h"
#include "cluster/run/prepare.h"
#include "cluster/run/training_run.h"

namespace motley {

// What a dry run would have started.
void print_intention(const PreparedRun& run, const TrainingRequest& request);
[[nodiscard]] Json intention_to_json(const PreparedRun& run, const TrainingRequest& request);

// How a run ended, and what it left.
void print_summary(const PreparedRun& run, const TrainingSummary& summary);

}  // namespace motley
