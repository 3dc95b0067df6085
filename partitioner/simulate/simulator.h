// The simulator runs the same schedule as the executor, on the cost model. Pure. The model:
// docs/algorithms.md.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "pipeline/schedule/action.h"
#include "plan/plan.h"
#include "plan/trace.h"

namespace motley {

class CostModel;

struct SimulateOptions {
  bool spans = false;       // record the activity of each rank and link
  std::uint64_t seed = 0;   // for drawn times
  bool draw_times = false;  // from the measured distribution instead of the median
};

// Each rank's compute stream from the start of the step to its own end: the times add up to it.
struct SimulatedStep {
  double step_s = 0;
  std::vector<double> compute_s;      // [Rank]
  std::vector<double> codec_s;        // [Rank] on the compute stream: codecs and messages
  std::vector<double> wait_s;         // [Rank] the sum of the two causes:
  std::vector<double> wait_sender_s;  // [Rank] while the sender had not sent yet
  std::vector<double> wait_link_s;    // [Rank] while the message was in transit
  std::vector<TraceSpan> spans;       // in order of start; only with SimulateOptions::spans
};

// The cost model's slot of each rank: [Rank]. The n-th rank on a device of one name gets the n-th
// slot of that name. kConfig if the plan names a device that the cluster lacks.
[[nodiscard]] Result<std::vector<int>> slots_of_ranks(const Plan& plan, const CostModel& cost);

// The time of one step. Each rank runs its actions in order on one compute stream; messages share
// links as in partitioner/simulate/shared_links.h. kConfig if a profile lacks a codec of the plan
// or, for schedule split, the two parts of backward; kInternal for a schedule that deadlocks.
// rank_slots: the result of slots_of_ranks. REQUIRES: schedule, plan and rank_slots agree in ranks
// and chunks; validate_schedule accepts the schedule or it deadlocks.
[[nodiscard]] Result<SimulatedStep> simulate_step(const Schedule& schedule,
                                                  const Plan& plan,
                                                  const ModelSpec& model,
                                                  const CostModel& cost,
                                                  const std::vector<int>& rank_slots,
                                                  const SimulateOptions& options = {});

}  // namespace motley
