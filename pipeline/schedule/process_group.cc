#include "pipeline/schedule/process_group.h"

#include <string>
#include <utility>

#include "pipeline/schedule/action.h"
#include "plan/gradient_group.h"

namespace motley {

std::vector<Rank> tied_parameter_ranks(const Plan& plan) {
  return distinct_ranks(tied_members(plan));
}

ProcessGroup process_group(const Plan& plan, std::span<const Rank> ranks) {
  ProcessGroup group;
  group.machines = ranks_by_machine(
      ranks, [&](Rank rank) -> const std::string& { return plan.ranks[rank.index()].machine; });
  for (const std::vector<Rank>& members : group.machines) {
    const std::int64_t speed = plan.ranks[members.front().index()].link_mbps;
    // Speeds only matter relative to each other: all of them or none.
    if (speed == 0) return {std::move(group.machines), {}};
    group.link_speeds.push_back(speed);
  }
  return group;
}

}  // namespace motley
