// ProcessGroup: the members of an all-reduce by machine, and the speeds of these machines' links.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "pipeline/schedule/allreduce_plan.h"
#include "plan/plan.h"

namespace motley {

struct ProcessGroup {
  RanksByMachine machines;
  std::vector<std::int64_t>
      link_speeds;  // [machine], Mbit/s; empty unless the plan has all of them
};

// The ranks that hold a tied parameter (tied_members), ascending, each once.
[[nodiscard]] std::vector<Rank> tied_parameter_ranks(const Plan& plan);

// The group of these ranks, equal on every rank of the plan. REQUIRES: ranks ascend.
[[nodiscard]] ProcessGroup process_group(const Plan& plan, std::span<const Rank> ranks);

}  // namespace motley
