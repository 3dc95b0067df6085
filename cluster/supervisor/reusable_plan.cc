#include "cluster/supervisor/reusable_plan.h"

#include <algorithm>

namespace motley {
namespace {

bool is_listed(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool uses_any(const Plan& plan, const std::vector<std::string>& machines) {
  return std::ranges::any_of(
      plan.ranks, [&](const RankPlan& rank) { return is_listed(machines, rank.machine); });
}

}  // namespace

std::optional<Plan> plan_to_reuse(const Plan& first,
                                  const Plan& last,
                                  const std::vector<std::string>& left_out,
                                  const std::vector<std::string>& without) {
  if (!uses_any(first, without)) return first;
  const bool is_back = std::ranges::any_of(
      left_out, [&](const std::string& machine) { return !is_listed(without, machine); });
  if (is_back || uses_any(last, without)) return {};
  return last;
}

}  // namespace motley
