// A plan in words and tables for people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/advise/planning_input.h"
#include "partitioner/advise/text_table.h"
#include "partitioner/search/planner.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

struct PlanAnalysis;
struct RankMemory;

// The short form: who holds which layers, memory used and free, predicted times. kConfig when the
// plan does not belong to the others.
[[nodiscard]] Result<std::string> explain_plan(const Plan& plan,
                                               const ModelSpec& model,
                                               const Cluster& cluster,
                                               const Profile& profile);

// The long form: also where each machine's time goes and why it idles, what binds, what each
// machine adds, what came close, and how good the plan is proven to be. Plans again once for each
// machine. Errors of make_plan. REQUIRES: plan_in_full(input) gave `planning`.
[[nodiscard]] Result<std::string> explain_in_full(const PlanningInput& input,
                                                  const Planning& planning);
// The same where analyse_plan gave `analysis` of them already: plans nothing.
[[nodiscard]] Result<std::string> explain_in_full(const PlanningInput& input,
                                                  const Planning& planning,
                                                  const PlanAnalysis& analysis);

// One line: whether the plan is proven to be the best, and whether the search was ended.
[[nodiscard]] std::string search_line(const Planning& planning);

// The machines of the cluster that are virtual, with what the figures rest on: "gpu (rtx-3060)".
[[nodiscard]] std::string imagined_text(const Cluster& cluster);

// What each machine adds: a row a machine, the step without it or also with it beside that of the
// plan. Empty where there is only one.
[[nodiscard]] std::vector<TextRow> worth_rows(const PlanAnalysis& analysis, double step_s);

// What each process holds in memory at its peak, by place: a row a rank, under its name; places
// that no rank uses are left out. REQUIRES: as many names as ranks.
[[nodiscard]] std::string memory_table(const std::vector<RankMemory>& ranks,
                                       const std::vector<std::string>& names);

// "embed … h.3.mlp (9)": the chunk's layers. REQUIRES: the model has them.
[[nodiscard]] std::string layers_text(const ModelSpec& model, const ChunkPlan& chunk);

// "1f1b, 64 micro-batches of 1 sample".
[[nodiscard]] std::string schedule_text(const Plan& plan);

// "1"; of a shared stage "1a", "1b", …
[[nodiscard]] std::string stage_name(const Plan& plan, std::size_t chunk, std::size_t replica);

}  // namespace motley
