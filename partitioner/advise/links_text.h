// Where the speeds of a plan's links come from.
#pragma once

#include <string>

#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/plan.h"

namespace motley {

// A line for people as long as nobody has measured the links that the plan uses; "" for machines
// without addresses, which are processes of one computer, or imagined.
[[nodiscard]] std::string links_text(const Plan& plan,
                                     const ModelSpec& model,
                                     const Cluster& cluster);

}  // namespace motley
