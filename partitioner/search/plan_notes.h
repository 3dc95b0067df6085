// A plan's notes about itself (docs/formats/plan.md).
#pragma once

#include <optional>

#include "partitioner/cost/cost_model.h"
#include "partitioner/search/plan_options.h"
#include "partitioner/search/trial_search.h"
#include "plan/cluster.h"
#include "plan/plan.h"

namespace motley {

// The codec of gradients, the comparison with the fastest device alone, and unused devices. trials:
// those of which the plan is the best.
void add_notes(const CostModel& cost, const PlanOptions& options, const Trials& trials, Plan& plan);

// The coarser codecs that the plan uses, and their gain. step_s: without them.
void note_coarser(const CoarserCodecs& coarser, double step_s, Plan& plan);

// What a plan with rounds of local training is compared with.
struct RoundsContext {
  const Cluster& cluster;
  const std::optional<Plan>& single;  // the fastest device alone
  double synchronous_step_s;          // of the best plan without rounds
  double loss_increase;               // at equal tokens, as a share
};

// Replaces the notes of the plan's search, which knew other links: the comparison with the fastest
// device alone, unused machines, and what the rounds gain and cost. REQUIRES: the plan has rounds.
void note_rounds(const RoundsContext& context, Plan& plan);

}  // namespace motley
