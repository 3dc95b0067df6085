#include "pipeline/schedule/bucket_role.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace motley {

bool is_inside(ReducePhase phase) {
  return phase == ReducePhase::kLocalReduceScatter || phase == ReducePhase::kLocalAllGather;
}

bool is_added(ReducePhase phase) {
  return phase == ReducePhase::kLocalReduceScatter || phase == ReducePhase::kCrossReduceScatter;
}

BucketRole role_in(const AllreducePlan& plan, const ReduceBucket& bucket, Rank self) {
  BucketRole role;
  role.values = bucket.values;
  role.is_owners = plan.machine_of(self) == bucket.owner;
  for (const ReduceMessage& message : plan.messages(bucket)) {
    const auto phase = static_cast<std::size_t>(message.phase);
    if (message.from == self) role.sends[phase].push_back(message);
    if (message.to != self) continue;
    const std::size_t order =
        is_inside(message.phase) ? plan.local_rank_of(message.from) : plan.machine_of(message.from);
    role.receives[phase].push_back({message, order});
  }
  for (auto& expected : role.receives) {
    std::ranges::sort(expected, {}, [](const ExpectedMessage& e) {
      return std::tuple(e.message.values.first, e.order);
    });
  }
  std::ranges::stable_sort(role.sends[static_cast<std::size_t>(ReducePhase::kCrossAllGather)], {},
                           [](const ReduceMessage& m) { return m.values.first; });
  return role;
}

}  // namespace motley
