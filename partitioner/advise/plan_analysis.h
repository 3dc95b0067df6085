// PlanAnalysis: where the time of a planned step goes, and what each machine is worth. Pure; it
// simulates the plan once and plans again once for each machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/advise/planning_input.h"
#include "partitioner/cost/plan_memory.h"
#include "plan/plan.h"
#include "plan/trace.h"

namespace motley {

// Where one rank's time goes; the parts add up to the step.
struct RankTime {
  double compute_s = 0;
  double codec_s = 0;
  double fill_s = 0;        // before its first work, while the stages before it work
  double drain_s = 0;       // after its last, until the slowest rank has ended
  double wait_stage_s = 0;  // in between, while the stage that it needs something from works
  double wait_link_s = 0;   // while what it needs is under way
};

// A direction between two machines.
struct LinkUse {
  std::string from;
  std::string to;
  double bytes = 0;   // of a step
  double busy_s = 0;  // in a step
};

// What a machine adds to the plan, or would.
struct MachineWorth {
  std::string machine;
  bool used = false;
  bool forbidden = false;        // by a pin
  std::optional<double> step_s;  // used: of the best plan without it; else: of the best with it
  std::string how;               // what else that plan does otherwise; "" = nothing
  std::string why_not;           // where there is no such plan
};

struct PlanAnalysis {
  double step_s = 0;
  std::vector<RankTime> ranks;     // [Rank]
  std::vector<RankMemory> memory;  // [Rank] at its peak
  std::vector<LinkUse> links;      // most used first
  std::vector<TraceSpan> spans;    // what each rank and link does when
  std::vector<MachineWorth> machines;
  std::vector<std::string> not_tried;  // machines beyond the number that is tried
};

// Errors of simulate_plan.
[[nodiscard]] Result<PlanAnalysis> analyse_plan(const PlanningInput& input, const Plan& plan);

// The same without what each machine is worth: plans nothing.
[[nodiscard]] Result<PlanAnalysis> analyse_step(const PlanningInput& input, const Plan& plan);

}  // namespace motley
