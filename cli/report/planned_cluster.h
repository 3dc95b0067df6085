// The machines of a run's plan, for use without its cluster file.
#pragma once

#include <optional>

#include "plan/cluster.h"
#include "plan/plan.h"
#include "record/run_prediction.h"

namespace motley {

// Link speeds are those that the plan assumes: from the run's prediction for pairs of machines that
// communicate, otherwise the plan's value for the machine. REQUIRES: the prediction is of that
// plan.
[[nodiscard]] Cluster planned_cluster(const Plan& plan,
                                      const std::optional<RunPrediction>& prediction);

}  // namespace motley
