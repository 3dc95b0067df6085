// The planner: pure functions; same input, same bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/plan_options.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

// The proven bounds of the chosen plan, per micro-batch (periods) and per step.
struct PlanBounds {
  std::string method;               // exact | all sets | beam | given
  double period_s = 0;              // of the plan
  double period_bound_s = 0;        // no pipeline of single devices has a shorter period
  double least_period_s = 0;        // shortest found; a plan's may be longer for a shorter step
  double fluid_period_s = 0;        // with cuts anywhere
  double granularity_period_s = 0;  // with whole layers; 0 = not known
  double estimate_s = 0;            // of the plan's step
  double step_bound_s =
      0;  // no pipeline of single devices (exact: no candidate) is estimated shorter
  // exact: no other candidate has a shorter estimated step. all sets: the least period was found,
  // to within 1e-6. Otherwise false; the bounds then limit how far the plan may be off.
  bool proven = false;
};

struct Planning {
  Plan plan;
  std::vector<Plan> alternatives;     // the next best with other devices or cuts, best first
  std::optional<Plan> single;         // the best single device
  std::optional<Plan> data_parallel;  // the whole model on several devices
  PlanBounds bounds;
  bool is_complete = true;  // false: PlanOptions::watch stopped the search
};

// Chooses the devices (in an order, alone or as replicas that share a stage), the cuts, the
// micro-batch size, the schedule (split backward if the profile has its parts), activation
// checkpointing and codecs. They minimise the simulated step and fit every device's memory. The
// best single machine and pure data parallelism are always among the candidates. kConfig if the
// options contradict the model (more stages than layers or devices, a global batch that
// micro-batches do not divide, impossible pins). kInfeasible if nothing fits, naming the device
// that is short of memory and its deficit.
[[nodiscard]] Result<Planning> plan_in_full(const ModelSpec& model,
                                            const Cluster& cluster,
                                            const Profile& profile,
                                            const PlanOptions& options);

// The plan of plan_in_full.
[[nodiscard]] Result<Plan> make_plan(const ModelSpec& model,
                                     const Cluster& cluster,
                                     const Profile& profile,
                                     const PlanOptions& options);

// Whether several ranks hold the model's tied parameter, and must all-reduce its gradient.
[[nodiscard]] bool tied_across_ranks(const ModelSpec& model, const Plan& plan);

}  // namespace motley
