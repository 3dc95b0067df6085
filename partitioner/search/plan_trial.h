// A candidate as a plan, with the simulator's prediction of its step.
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

// The common inputs of the simulations of one search. All references must outlive the search.
struct TrialSetting {
  const ModelSpec& model;
  const CostModel& cost;  // rates candidates
  // The same with each codec of gradients that a plan may have; ties go to the earlier one.
  const CostModels& with_each_codec;
  const SearchSpace& space;
  const PlanOptions& options;
  TrialMemo& memo;  // shared by all searches for one plan
};

struct PlanTrial {
  StepShape shape;
  Candidate candidate;
  Plan plan;  // with its predictions, without the model's hash
};

// The candidate's plan, simulated. With a split backward each stage queues as many weight parts as
// the first has micro-batches in flight, or as many as fit its memory; kInfeasible if that is none.
// REQUIRES: the candidate is rated for `shape`; with a split backward cost.check_split().ok().
[[nodiscard]] Result<PlanTrial> try_candidate(const ModelSpec& model,
                                              const CostModel& cost,
                                              const SearchSpace& space,
                                              const StepShape& shape,
                                              Candidate candidate);

// Shorter; of equally short ones, the simpler.
[[nodiscard]] bool is_better(const PlanTrial& a, const PlanTrial& b);

}  // namespace motley
