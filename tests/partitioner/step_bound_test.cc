#include "partitioner/cost/step_bound.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "partitioner/search/plan_trial.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

// One to three slots, with at least one micro-batch each.
StageChoice random_stage(int slots, int micro_batches, int codecs) {
  StageChoice stage;
  stage.slots.resize(static_cast<std::size_t>(slots));
  std::iota(stage.slots.begin(), stage.slots.end(), 0);
  const int most = std::min({slots, micro_batches, *rc::gen::element(1, 1, 1, 2, 3)});
  while (static_cast<int>(stage.slots.size()) > most) {
    stage.slots.erase(stage.slots.begin() +
                      *rc::gen::inRange(0, static_cast<int>(stage.slots.size())));
  }
  int left = micro_batches;
  for (int behind = most - 1; behind >= 0; --behind) {
    stage.batch_split.push_back(behind == 0 ? left : *rc::gen::inRange(1, left - behind + 1));
    left -= stage.batch_split.back();
  }
  stage.codec = *rc::gen::inRange(0, codecs);
  return stage;
}

// Any slots in any order, with repetitions.
Candidate random_candidate(const Problem& problem, const StepShape& shape) {
  const auto layers = static_cast<int>(problem.layers.size());
  Candidate candidate;
  for (int first = 0; first < layers; first += *rc::gen::inRange(1, layers + 1)) {
    candidate.stages.push_back(random_stage(static_cast<int>(problem.machines.size()),
                                            shape.micro_batches,
                                            static_cast<int>(problem.options.codecs.size())));
    candidate.stages.back().first_layer = first;
  }
  return candidate;
}

RC_GTEST_PROP(StepBound, IsNeverLongerThanTheSimulatedStep, ()) {
  Problem problem = random_problem({.layers_max = 8, .machines_max = 4});
  for (LayerSketch& layer : problem.layers) layer.queued_bytes = 10;
  StepShape shape{*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 17),
                  *rc::gen::element(ScheduleKind::kGpipe, ScheduleKind::kOneFOneB),
                  *rc::gen::inRange(1, 4)};
  if (shape.schedule == ScheduleKind::kOneFOneB && *rc::gen::arbitrary<bool>()) {
    shape.schedule = ScheduleKind::kSplit;
  }
  const ModelSpec model = problem.model();
  const auto cost =
      CostModel::make(model, problem.cluster(), problem.profile(), 1, {.moments_per_parameter = 2},
                      *rc::gen::element<std::string>("none", kHalf));
  const SearchSpace space = search_space(problem.options, model, *cost);
  const StageTable table(*cost, shape);
  const StepEstimate estimate(table, space);
  Candidate candidate = random_candidate(problem, shape);
  RC_PRE(estimate.rate_with_split(candidate));
  const auto trial = try_candidate(model, *cost, space, shape, candidate);
  RC_PRE(trial.ok());
  const double least_s = StepBound(estimate).least_s(candidate);
  RC_CLASSIFY(shape.splits_backward(), "split");
  RC_CLASSIFY(candidate.stages.size() > 1, "several stages");
  RC_CLASSIFY(least_s > 0.8 * trial->plan.predicted_step_s, "within a fifth");
  RC_ASSERT(least_s <= trial->plan.predicted_step_s);
}

// With free links it is (m + p - 1) times the forward and backward of a stage. A split backward
// ends with the first stage's last weight part, and hides the others except those that fill the
// pipeline.
TEST(StepBound, IsTheStepOfEqualStages) {
  Problem problem;
  problem.layers.assign(4, {.work_s = 3, .parameters = 0, .queued_bytes = 1});
  problem.machines.resize(4);
  const auto cost = problem.cost();
  const SearchSpace space = search_space(problem.options, problem.model(), *cost);
  Candidate candidate;
  for (int i = 0; i < 4; ++i) candidate.stages.push_back({{i}, {8}, i, false, 0});
  const auto bound_s = [&](const StepShape& shape) {
    const StageTable table(*cost, shape);
    return StepBound(StepEstimate(table, space)).least_s(candidate);
  };
  EXPECT_NEAR(bound_s({1, 8, ScheduleKind::kGpipe}), (8 + 4 - 1) * 3, 1e-6);
  EXPECT_NEAR(bound_s({1, 8}), (8 + 4 - 1) * 3, 1e-6);
  EXPECT_NEAR(bound_s({.micro_batch = 1, .micro_batches = 8, .schedule = ScheduleKind::kSplit}),
              3 * 8 + 3, 1e-6);
}

}  // namespace
}  // namespace motley
