// The traffic of a plan besides activations, and the sources of its link speeds.
#pragma once

#include <string>
#include <vector>

#include "models/spec/model_spec.h"
#include "partitioner/cost/cost_model.h"
#include "plan/cluster.h"
#include "plan/plan.h"

namespace motley {

// A note if the links that the plan uses were not measured; "" for machines without addresses,
// which are processes of one computer, or virtual.
[[nodiscard]] std::string links_text(const Plan& plan,
                                     const ModelSpec& model,
                                     const Cluster& cluster);

// A table of the all-reduces of gradients: their members, the most bytes that a member sends in a
// step, and their duration without other traffic and codecs; "" if there are none. cost: for the
// plan's codec of gradients; slots: the result of slots_of_ranks.
[[nodiscard]] std::string allreduce_table(const Plan& plan,
                                          const CostModel& cost,
                                          const std::vector<int>& slots);

}  // namespace motley
