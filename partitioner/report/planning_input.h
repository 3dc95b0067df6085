// All inputs of a plan as one value; what-if questions vary it.
#pragma once

#include <string>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/planner.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

struct PlanningInput {
  ModelSpec model;
  Cluster cluster;
  Profile profile;
  PlanOptions options;
};

// Errors as make_plan's above.
[[nodiscard]] Result<Plan> make_plan(const PlanningInput& input);

// The memory of a machine that all its devices share: as configured, otherwise as measured; if each
// device has memory of its own, the measured memory of the first. 0 if unknown. REQUIRES: the
// cluster has the machine.
[[nodiscard]] double machine_memory_gib(const PlanningInput& input, const std::string& machine);

// The same input with that much memory; if each device has memory of its own, that much in each.
// REQUIRES: as above.
[[nodiscard]] PlanningInput with_machine_memory(PlanningInput input,
                                                const std::string& machine,
                                                double gib);

// The memory that was free on it when it was measured; 0 if unknown. REQUIRES: as above.
[[nodiscard]] double measured_memory_gib(const PlanningInput& input, const std::string& machine);

// The same input without a machine and its pins. REQUIRES: the cluster has it, and another.
[[nodiscard]] PlanningInput without_machine(PlanningInput input, const std::string& machine);

// The same input with a copy of a machine: "box-2", or the next free number, with box's devices,
// speed, memory and links. REQUIRES: the cluster has it.
[[nodiscard]] PlanningInput with_duplicate(PlanningInput input, const std::string& machine);

}  // namespace motley
