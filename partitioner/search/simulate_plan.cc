#include "partitioner/search/simulate_plan.h"

#include "partitioner/cost/cost_model.h"
#include "pipeline/schedule/schedules.h"

namespace motley {

Result<SimulatedPlan> simulate_plan(const Plan& plan,
                                    const ModelSpec& model,
                                    const Cluster& cluster,
                                    const Profile& profile,
                                    const PlanOptions& options,
                                    const SimulateOptions& how) {
  MOTLEY_ASSIGN(const CostModel cost,
                CostModel::make(model, cluster, profile, options.default_threads,
                                options.process_state, plan.gradient_codec));
  MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan, cost));
  SimulatedPlan simulated;
  MOTLEY_ASSIGN(simulated.schedule, make_schedule(plan, tied_across_ranks(model, plan)));
  MOTLEY_ASSIGN(simulated.step, simulate_step(simulated.schedule, plan, model, cost, slots, how));
  simulated.memory = peak_memory(simulated.schedule, plan, cost, slots);
  return simulated;
}

}  // namespace motley
