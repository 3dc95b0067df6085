// Plans with rounds of local training (plan/rounds/rounds_plan.h): each machine that holds the
// whole model is an island, and the step's micro-batches are divided so that all islands end
// together.
//
// The cost of a round's all-reduce spreads over its steps, and with overlap the next steps hide
// most of it. A search among data-parallel plans on links and with codecs that are faster by that
// number of steps, or more, therefore finds devices and shares. The mean step of a round is then
// simulated (partitioner/search/simulate_plan.h).
#pragma once

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/planner.h"
#include "plan/cluster.h"
#include "plan/profile.h"

namespace motley {

// By this share the time to an equal loss must be shorter for the planner to choose rounds.
inline constexpr double kLeastRoundGain = 0.2;

// The synchronous planning, or one with rounds: if options.rounds gives the steps of a round, or if
// it leaves them open and the time to an equal loss is shorter by kLeastRoundGain or more.
// kInfeasible if rounds are required and fewer than two machines hold the model. REQUIRES:
// options.rounds, permits_rounds(options).
[[nodiscard]] Result<Planning> with_rounds(const ModelSpec& model,
                                           const Cluster& cluster,
                                           const Profile& profile,
                                           const PlanOptions& options,
                                           Planning synchronous);

}  // namespace motley
