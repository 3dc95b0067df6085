// ProcessGroup: who takes part in a sum, and how fast their machines' links are.
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
  std::vector<std::int64_t> link_speeds;  // [machine], in Mbit/s; empty where the plan has none
};

// The holders of a tied parameter (tied_holders), ascending.
[[nodiscard]] std::vector<Rank> end_ranks(const Plan& plan);

// As every rank has to see it. REQUIRES: ranks ascend.
[[nodiscard]] ProcessGroup process_group(const Plan& plan, std::span<const Rank> ranks);

}  // namespace motley
