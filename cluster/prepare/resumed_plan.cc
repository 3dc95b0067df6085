#include "cluster/prepare/resumed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cluster/planning/check_plan.h"
#include "cluster/planning/plan_rounding.h"
#include "partitioner/report/remedy.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

// Whether both request the same from the planner.
bool ask_alike(const Config& a, const Config& b) {
  const Json wishes[] = {config_to_json(a), config_to_json(b)};
  const auto same = [&](const char* section) { return wishes[0][section] == wishes[1][section]; };
  return same("parallel") && same("compression") && a.train.global_batch == b.train.global_batch &&
         a.train.micro_batch == b.train.micro_batch && a.run.threads == b.run.threads;
}

// The run's previous plan, if it can still be executed and meets the request.
std::optional<Plan> plan_so_far(const SavedPlanning& saved,
                                const Config& config,
                                const PlanningInput& input,
                                const RunFolder& folder) {
  auto plan = read_plan(folder.plan_path());
  const int stages = input.options.stages;
  const bool is_wanted = plan.ok() && ask_alike(saved.config, config) &&
                         (stages == 0 || stages == plan->rank_count()) &&
                         !plan_change(saved.fingerprint, plan_fingerprint(*plan));
  if (!is_wanted || !check_plan(*plan, input.model, config, input.cluster)) return {};
  for (RankPlan& rank : plan->ranks) {
    const DeviceProfile* const device = input.profile.find(rank.machine, rank.device);
    if (device != nullptr) rank.compute_dtype = device->compute_dtype;
  }
  return std::move(plan).value();
}

}  // namespace

Result<Plan> plan_like(const std::optional<SavedPlanning>& saved,
                       const Config& config,
                       const PlanningInput& input,
                       const RunFolder& folder) {
  if (saved) {
    auto planning = plan_in_full(input.model, input.cluster, input.profile,
                                 options_like(saved->fingerprint, config, input.options));
    if (planning.ok() && !rounding_change(saved->fingerprint, folder, planning->plan)) {
      return std::move(planning->plan);
    }
    auto before = plan_so_far(*saved, config, input, folder);
    // As when machines that were away are back: islands again, rather than the plan without them.
    const bool adds_rounds = planning.ok() && planning->plan.rounds && before && !before->rounds;
    if (before && !adds_rounds) return *std::move(before);
    if (planning.ok()) return std::move(planning->plan);
  }
  MOTLEY_ASSIGN(Planning planning, plan_or_remedy(input));
  return std::move(planning.plan);
}

std::optional<std::string> rounding_change(const PlanFingerprint& saved,
                                           const RunFolder& folder,
                                           const Plan& plan) {
  const PlanFingerprint now = plan_fingerprint(plan);
  if (auto change = plan_change(saved, now)) return change;
  if (std::ranges::max(now.replicas) == 1) return {};
  // A checkpoint does not contain the replicas' shares of the batch.
  const auto before = read_plan(folder.plan_path());
  if (!before.ok() || have_same_rounding(*before, plan)) return {};
  return "other layers or other shares of the batch on its replicas";
}

void log_plan_change(const PlanFingerprint& saved,
                     const RunFolder& folder,
                     const Plan& plan,
                     const Log& log) {
  const auto change = rounding_change(saved, folder, plan);
  if (!change) return;
  log.warn(
      fmt::format("the run continues with {}, because the configuration or the machines have "
                  "changed; sums are rounded differently",
                  *change));
}

}  // namespace motley
