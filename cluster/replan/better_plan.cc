#include "cluster/replan/better_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "partitioner/search/simulate_plan.h"

namespace motley {

Result<std::optional<BetterPlan>> find_better_plan(const PlanningInput& input,
                                                   const RunMeasurement& run,
                                                   double least_gain) {
  MOTLEY_ASSIGN(const Calibration calibration, calibrate(input, {run}));
  BetterPlan better;
  better.profile = calibrated(input.profile, calibration);
  MOTLEY_ASSIGN(const SimulatedPlan present,
                simulate_plan(run.plan, input.model, input.cluster, better.profile, input.options));
  better.present_step_s = present.step.step_s;
  MOTLEY_ASSIGN(Planning planning,
                plan_in_full(input.model, input.cluster, better.profile, input.options));
  better.plan = std::move(planning.plan);
  const double step_s = std::min(better.present_step_s, run.step_s);
  if (better.plan.predicted_step_s > (1 - least_gain) * step_s) return std::optional<BetterPlan>();
  return std::optional(std::move(better));
}

std::string cut_text(const Plan& plan) {
  std::string text;
  for (const ChunkPlan& chunk : plan.chunks) {
    std::string machines;
    for (const Replica& replica : chunk.replicas) {
      machines += (machines.empty() ? "" : "+") + plan.ranks[replica.rank.index()].machine;
      if (chunk.replicas.size() > 1) machines += fmt::format("×{}", replica.micro_batches);
    }
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", machines, chunk.layer_count);
  }
  return text;
}

}  // namespace motley
