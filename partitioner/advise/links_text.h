// What crosses the links of a plan besides activations, and where their speeds come from.
#pragma once

#include <string>
#include <vector>

#include "models/spec/model_spec.h"
#include "partitioner/cost/cost_model.h"
#include "plan/cluster.h"
#include "plan/plan.h"

namespace motley {

// A line for people as long as nobody has measured the links that the plan uses; "" for machines
// without addresses, which are processes of one computer, or imagined.
[[nodiscard]] std::string links_text(const Plan& plan,
                                     const ModelSpec& model,
                                     const Cluster& cluster);

// A table of the sums of gradients over ranks: who sums, what the busiest of them sends in a step,
// and how long that takes where nothing else crosses, without codecs; "" where there are none.
// cost: for the plan's codec of gradients; slots: as slots_of_ranks gives them.
[[nodiscard]] std::string sums_table(const Plan& plan,
                                     const CostModel& cost,
                                     const std::vector<int>& slots);

}  // namespace motley
