// A plan as text and tables.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/text/text_table.h"
#include "models/spec/model_spec.h"
#include "partitioner/report/planning_input.h"
#include "partitioner/search/planner.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

struct PlanAnalysis;
struct RankMemory;

// The short form: the layers of each device, memory used and free, predicted times. kConfig if the
// plan does not match the other arguments.
[[nodiscard]] Result<std::string> explain_plan(const Plan& plan,
                                               const ModelSpec& model,
                                               const Cluster& cluster,
                                               const Profile& profile);

// The long form: also how each machine's time divides and why it idles, the bottleneck, the
// contribution of each machine, close alternatives, and the proven bounds. Plans again once for
// each machine. Errors of make_plan. REQUIRES: plan_in_full(input) returned `planning`.
[[nodiscard]] Result<std::string> explain_in_full(const PlanningInput& input,
                                                  const Planning& planning);
// The same with an existing result of analyse_plan; does not plan.
[[nodiscard]] Result<std::string> explain_in_full(const PlanningInput& input,
                                                  const Planning& planning,
                                                  const PlanAnalysis& analysis);

// One line: whether the plan is proven to be the best, and whether the search was stopped.
[[nodiscard]] std::string search_line(const Planning& planning);

// The train.precision of the profiled job.
[[nodiscard]] std::string profiled_precision(const Profile& profile);

// The cluster's virtual machines with their speeds in a job of that train.precision: "gpu
// (rtx-3060, 10900 Gflop/s in bf16)".
[[nodiscard]] std::string simulated_devices_text(const Cluster& cluster,
                                                 const std::string& precision);

// The contribution of each machine: a row for each, with the step without it, or with it if it is
// unused, beside the plan's step. Empty if there is only one machine.
[[nodiscard]] std::vector<TextRow> contribution_rows(const PlanAnalysis& analysis, double step_s);

// Each process's memory at its peak, by component: a row for each rank, under its name; components
// that no rank has are left out. REQUIRES: as many names as ranks.
[[nodiscard]] std::string memory_table(const std::vector<RankMemory>& ranks,
                                       const std::vector<std::string>& names);

// "embed … h.3.mlp (9)": the chunk's layers. REQUIRES: the model has them.
[[nodiscard]] std::string layers_text(const ModelSpec& model, const ChunkPlan& chunk);

// "1f1b, 64 micro-batches of 1 sample".
[[nodiscard]] std::string schedule_text(const Plan& plan);

// "1"; of a shared stage "1a", "1b", …
[[nodiscard]] std::string stage_name(const Plan& plan, std::size_t chunk, std::size_t replica);

}  // namespace motley
