// PlanAnalysis: how the time of a planned step divides, and the contribution of each machine. Pure;
// it simulates the plan once and plans again once for each machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/cost/plan_memory.h"
#include "partitioner/report/planning_input.h"
#include "plan/plan.h"
#include "plan/trace.h"

namespace motley {

// How one rank's time divides; the parts add up to the step.
struct RankTime {
  double compute_s = 0;
  double codec_s = 0;
  double fill_s = 0;        // before its first work, while earlier stages work
  double drain_s = 0;       // after its last work, until the slowest rank has ended
  double wait_stage_s = 0;  // in between, while the sender of an awaited message works
  double wait_link_s = 0;   // while an awaited message is in transit
};

// One direction between two machines.
struct LinkUse {
  std::string from;
  std::string to;
  double bytes = 0;   // of a step
  double busy_s = 0;  // in a step
};

// The contribution of a machine to the plan, actual or possible.
struct MachineContribution {
  std::string machine;
  bool used = false;
  bool forbidden = false;        // by a pin
  std::optional<double> step_s;  // of the best plan without it, or with it if unused
  std::string how;               // further differences of that plan; "" = none
  std::string why_not;           // the error if there is no such plan
};

struct PlanAnalysis {
  double step_s = 0;
  std::vector<RankTime> ranks;     // [Rank]
  std::vector<RankMemory> memory;  // [Rank] at its peak
  std::vector<LinkUse> links;      // most used first
  std::vector<TraceSpan> spans;    // the activity of each rank and link
  std::vector<MachineContribution> machines;
  std::vector<std::string> not_tried;  // machines beyond the limit
};

// Errors of simulate_plan.
[[nodiscard]] Result<PlanAnalysis> analyse_plan(const PlanningInput& input, const Plan& plan);

// The same without the contributions of machines; does not plan.
[[nodiscard]] Result<PlanAnalysis> analyse_step(const PlanningInput& input, const Plan& plan);

}  // namespace motley
