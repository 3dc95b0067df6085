// The machines of a run's plan, for those who have no cluster file of it.
#pragma once

#include <optional>

#include "cluster/follow/run_prediction.h"
#include "plan/cluster.h"
#include "plan/plan.h"

namespace motley {

// On the links that the plan counts on: of pairs of machines that send each other anything as the
// run's prediction says, of others as the plan has it for the machine. REQUIRES: the prediction is
// of that plan.
[[nodiscard]] Cluster planned_cluster(const Plan& plan,
                                      const std::optional<RunPrediction>& prediction);

}  // namespace motley
