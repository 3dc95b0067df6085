#include "partitioner/period_search/exact_search.h"

#include <limits>

#include "partitioner/cost/step_estimate.h"
#include "partitioner/search/memory_deficit.h"
#include "tests/partitioner/oracle.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

StepShape random_shape() {
  return {*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 17),
          *rc::gen::element(ScheduleKind::kGpipe, ScheduleKind::kOneFOneB),
          *rc::gen::inRange(1, 4)};
}

CostModel cost_of(const Problem& problem) {
  auto cost = problem.cost();
  for (const auto& [machine, share] : problem.options.pins.memory_share) {
    cost->limit_memory(machine, share);
  }
  return std::move(*cost);
}

void assert_covers_each_layer_once(const Candidate& candidate, int layers) {
  RC_ASSERT(candidate.stages.front().first_layer == 0);
  for (std::size_t i = 0; i < candidate.stages.size(); ++i) {
    const bool is_last = i + 1 == candidate.stages.size();
    const int end = is_last ? layers : candidate.stages[i + 1].first_layer;
    RC_ASSERT(candidate.stages[i].first_layer < end);
  }
}

// More instances: RC_PARAMS="max_success=100000 seed=…" in the environment.
RC_GTEST_PROP(ExactSearch, FindsTheLeastEstimateOfAllPlans, ()) {
  Problem problem = random_pinned_problem({.layers_max = 8, .machines_max = 4});
  // With a free choice of both, the largest problems are slow to enumerate.
  const bool large = problem.machines.size() * problem.layers.size() > 20;
  if (large && problem.options.recompute == "auto") problem.options.recompute = "none";
  problem.options.stages =
      *rc::gen::element(0, 0, *rc::gen::inRange(1, static_cast<int>(problem.machines.size()) + 1));
  const StepShape shape = random_shape();
  const CostModel cost = cost_of(problem);
  const SearchSpace space = search_space(problem.options, problem.model(), cost);
  const double least_s = Oracle(problem, shape).best(problem.options.stages).step_s;
  const StageTable table(cost, shape);
  const auto found = search_exactly(table, space, {.keep = 3});
  RC_ASSERT(found.empty() == (least_s == kInfinite));
  if (found.empty()) return;
  RC_CLASSIFY(found[0].stages.size() > 1, "several stages");
  RC_CLASSIFY(found[0].stages[0].slots.size() > 1, "replicas");
  RC_CLASSIFY(found[0].stages[0].recompute, "recomputes");
  RC_ASSERT(std::abs(found[0].estimate_s - least_s) <= 1e-9 * least_s);
  for (const Candidate& candidate : found) {
    assert_covers_each_layer_once(candidate, cost.layer_count());
    Candidate again = candidate;
    RC_ASSERT(StepEstimate(table, space).rate(again));
    RC_ASSERT(again.stages == candidate.stages && again.estimate_s == candidate.estimate_s);
  }
}

}  // namespace
}  // namespace motley
