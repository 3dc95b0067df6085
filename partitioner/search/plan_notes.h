// A plan's notes about itself (docs/formats/plan.md).
#pragma once

#include "partitioner/cost/cost_model.h"
#include "partitioner/search/plan_options.h"
#include "partitioner/search/trial_search.h"
#include "plan/plan.h"

namespace motley {

// The codec of gradients, the comparison with the fastest device alone, and unused devices. trials:
// those of which the plan is the best.
void add_notes(const CostModel& cost, const PlanOptions& options, const Trials& trials, Plan& plan);

// The coarser codecs that the plan uses, and their gain. step_s: without them.
void note_coarser(const CoarserCodecs& coarser, double step_s, Plan& plan);

}  // namespace motley
