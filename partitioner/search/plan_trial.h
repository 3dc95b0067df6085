// A candidate as a plan, with what the simulator says of its step.
#pragma once

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"
#include "partitioner/search/plan_options.h"
#include "plan/plan.h"

namespace motley {

class TrialMemo;

// What all that one search simulates has in common. Whatever it refers to must outlive the search.
struct TrialSetting {
  const ModelSpec& model;
  const CostModel& cost;  // what candidates are rated by
  // The same with each codec of gradients that a plan may have; of equally good ones the earlier is
  // taken.
  const CostModels& with_each_codec;
  const SearchSpace& space;
  const PlanOptions& options;
  TrialMemo& memo;  // of all searches for one plan
};

struct PlanTrial {
  StepShape shape;
  Candidate candidate;
  Plan plan;  // with its predictions, without the hash of the model
};

// The plan that a candidate means, simulated. With shape.split each stage queues as many weight
// parts as the first has micro-batches in flight, or as its memory has room for; kInfeasible where
// that is none. REQUIRES: the candidate is rated under `shape`; with shape.split
// cost.check_split().ok().
[[nodiscard]] Result<PlanTrial> try_candidate(const ModelSpec& model,
                                              const CostModel& cost,
                                              const SearchSpace& space,
                                              const StepShape& shape,
                                              Candidate candidate);

// Shorter; and of equally short ones the simpler.
[[nodiscard]] bool is_better(const PlanTrial& a, const PlanTrial& b);

}  // namespace motley
