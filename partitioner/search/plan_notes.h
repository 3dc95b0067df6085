// What a plan says about itself: its notes (docs/formats/plan.md).
#pragma once

#include "partitioner/cost/cost_model.h"
#include "partitioner/search/plan_options.h"
#include "partitioner/search/trial_search.h"
#include "plan/plan.h"

namespace motley {

// Through what gradients cross, how the group compares with its fastest device, and what is left
// out. trials: those that the plan is the best of.
void add_notes(const CostModel& cost, const PlanOptions& options, const Trials& trials, Plan& plan);

// What of the coarser codecs the plan takes, and what for. step_s: without them.
void note_coarser(const CoarserCodecs& coarser, double step_s, Plan& plan);

}  // namespace motley
