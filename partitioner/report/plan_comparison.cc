#include "partitioner/report/plan_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/quantity_text.h"

namespace motley {
namespace {

std::string shape_text(const Plan& plan) {
  return fmt::format("{}, {} x {} samples", plan.schedule, plan.micro_batches, plan.micro_batch);
}

// "layers 0-6, 12-13 · 3.10 GiB", or "not used".
std::string share_text(const Plan& plan, const std::string& machine) {
  std::vector<std::string> runs;
  double memory_bytes = 0;
  for (const RankPlan& rank : plan.ranks) {
    if (rank.machine == machine) memory_bytes += static_cast<double>(rank.memory_bytes);
  }
  for (const ChunkPlan& chunk : plan.chunks) {
    const auto is_here = [&](const Replica& replica) {
      return plan.ranks[replica.rank.index()].machine == machine;
    };
    if (std::none_of(chunk.replicas.begin(), chunk.replicas.end(), is_here)) continue;
    const int last = chunk.first_layer + chunk.layer_count - 1;
    const std::string run = chunk.layer_count == 1 ? fmt::format("{}", last)
                                                   : fmt::format("{}-{}", chunk.first_layer, last);
    runs.push_back(chunk.replicas.size() > 1 ? run + " (shared)" : run);
  }
  if (runs.empty()) return "not used";
  return fmt::format("layers {}, {}", fmt::join(runs, ", "), bytes_text(memory_bytes));
}

std::vector<std::string> machines_of(const Plan& before, const Plan& after) {
  std::vector<std::string> machines;
  for (const Plan* plan : {&before, &after}) {
    for (const RankPlan& rank : plan->ranks) {
      if (std::find(machines.begin(), machines.end(), rank.machine) == machines.end()) {
        machines.push_back(rank.machine);
      }
    }
  }
  return machines;
}

}  // namespace

double units_per_s(const Plan& plan, const ModelSpec& model) {
  const auto samples = static_cast<double>(plan.micro_batch) * plan.micro_batches;
  return plan.predicted_step_s > 0
             ? static_cast<double>(model.units_per_sample()) * samples / plan.predicted_step_s
             : 0;
}

std::string compare_plans(const Plan& before, const Plan& after, const ModelSpec& model) {
  return aligned_table(comparison_rows(before, after, model, {"now", "then"}));
}

std::vector<TextRow> comparison_rows(const Plan& before,
                                     const Plan& after,
                                     const ModelSpec& model,
                                     const std::pair<std::string, std::string>& names) {
  const double before_rate = units_per_s(before, model);
  const double after_rate = units_per_s(after, model);
  std::vector<TextRow> rows = {
      {"", names.first, names.second, "change"},
      {"step" + times_label(after), seconds_text(before.predicted_step_s),
       seconds_text(after.predicted_step_s),
       change_text(before.predicted_step_s, after.predicted_step_s)},
      {model.unit + "/s", per_second_text(before_rate), per_second_text(after_rate),
       change_text(before_rate, after_rate)},
      {"schedule", shape_text(before), shape_text(after)},
  };
  for (const std::string& machine : machines_of(before, after)) {
    const std::string now = share_text(before, machine);
    const std::string then = share_text(after, machine);
    rows.push_back({machine, now, then, now == then ? "same" : ""});
  }
  return rows;
}

}  // namespace motley
