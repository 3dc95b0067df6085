#include "partitioner/search/simulate_plan.h"

#include <optional>

#include "partitioner/cost/cost_model.h"
#include "partitioner/search/round_plan.h"
#include "pipeline/schedule/schedules.h"

namespace motley {

Result<SimulatedPlan> simulate_plan(const Plan& plan,
                                    const ModelSpec& model,
                                    const Cluster& cluster,
                                    const Profile& profile,
                                    const PlanOptions& options,
                                    const SimulateOptions& how) {
  std::optional<Cluster> round_cluster;
  std::optional<Profile> round_profile;
  if (plan.rounds) {
    round_cluster = spread_over_round(cluster, plan.rounds->steps);
    round_profile = spread_over_round(profile, plan.rounds->steps);
  }
  MOTLEY_ASSIGN(const CostModel cost,
                CostModel::make(model, round_cluster ? *round_cluster : cluster,
                                round_profile ? *round_profile : profile, options.default_threads,
                                process_state_of(options, plan), plan.gradient_codec));
  MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan, cost));
  SimulatedPlan simulated;
  MOTLEY_ASSIGN(simulated.schedule, make_schedule(plan, tied_across_ranks(model, plan)));
  MOTLEY_ASSIGN(simulated.step, simulate_step(simulated.schedule, plan, model, cost, slots, how));
  simulated.memory = peak_memory(simulated.schedule, plan, cost, slots);
  return simulated;
}

}  // namespace motley
