// The candidates of a plan over all shapes of a step: the results of the searches, the best single
// device, pure data parallelism, and their bounds.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"
#include "partitioner/cost/step_estimate.h"
#include "partitioner/search/plan_options.h"

namespace motley {

struct ShapeBounds {
  StepShape shape;
  std::string method;               // "exact" | "all sets" | "beam" | "given"
  double fluid_period_s = 0;        // with cuts anywhere
  double granularity_period_s = 0;  // with whole layers; 0 = not known
  double period_bound_s = 0;        // no pipeline of single devices has a shorter period
  double least_period_s = 0;        // the shortest of those found
  double step_bound_s =
      0;  // no pipeline of single devices (exact: no candidate) is estimated shorter
};

struct Candidates {
  std::vector<ShapedCandidate> all;  // best estimate first; empty if nothing fits
  // For many slots, with a tied parameter: the best pipelines without it, rated without it.
  std::vector<ShapedCandidate> untied;
  std::optional<ShapedCandidate> single;
  // All layers on two devices or more, the best for each number of them; best estimate first.
  std::vector<ShapedCandidate> data_parallel;
  std::vector<ShapeBounds> bounds;  // [searched shape]
};

// Candidates with estimates above the ceiling are not needed, though some may be included; bounds
// are at most the ceiling.
[[nodiscard]] Candidates collect_candidates(
    const CostModel& cost,
    const SearchSpace& space,
    const PlanOptions& options,
    double ceiling_s = std::numeric_limits<double>::infinity());

// The shapes that the options allow. Those of schedule split are given as 1F1B: they have the same
// candidates, and their additional memory is known only for a whole pipeline
// (partitioner/search/plan_trial.h).
[[nodiscard]] std::vector<StepShape> step_shapes(const PlanOptions& options);

// The stages that options.cuts prescribe, on the first slots in the given order. Not rated.
[[nodiscard]] Candidate given_stages(const PlanOptions& options);

}  // namespace motley
