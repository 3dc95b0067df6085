// BucketRole: the messages that one rank sends and receives for a bucket of an AllreducePlan. Pure
// data, the same in every step.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/ids.h"
#include "pipeline/schedule/allreduce_plan.h"

namespace motley {

// Whether the phase's messages stay inside a machine.
[[nodiscard]] bool is_inside(ReducePhase phase);

// Whether received values are added; otherwise they replace the rank's values.
[[nodiscard]] bool is_added(ReducePhase phase);

struct ExpectedMessage {
  ReduceMessage message;
  std::size_t order = 0;  // of the sender's term: its local rank, or its machine
};

struct BucketRole {
  ValueRange values;       // the bucket's
  bool is_owners = false;  // the rank is on the machine that owns the bucket
  // Messages of kCrossAllGather with the same values are adjacent: they are encoded once.
  std::array<std::vector<ReduceMessage>, kReducePhases> sends;
  std::array<std::vector<ExpectedMessage>, kReducePhases> receives;  // by range, then in order
};

// REQUIRES: the rank and the bucket are in the plan.
[[nodiscard]] BucketRole role_in(const AllreducePlan& plan, const ReduceBucket& bucket, Rank self);

}  // namespace motley
