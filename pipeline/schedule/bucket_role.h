// BucketRole: what one rank sends and receives of a bucket of an AllreducePlan. Pure data, the same
// in every step.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/ids.h"
#include "pipeline/schedule/allreduce_plan.h"

namespace motley {

// Whether the phase's messages stay inside a machine.
[[nodiscard]] bool is_inside(ReducePhase phase);

// Whether what comes is added up; else it takes the place of the rank's values.
[[nodiscard]] bool is_added(ReducePhase phase);

struct ExpectedMessage {
  ReduceMessage message;
  std::size_t order = 0;  // of the sender's term: its place, or its machine
};

struct BucketRole {
  ValueRange values;       // the bucket's
  bool is_owners = false;  // the rank is on the machine that owns the bucket
  // Of kCrossAllGather those of the same values stand together: they are encoded once.
  std::array<std::vector<ReduceMessage>, kReducePhases> sends;
  std::array<std::vector<ExpectedMessage>, kReducePhases> receives;  // by range, then in order
};

// REQUIRES: the rank and the bucket are in the plan.
[[nodiscard]] BucketRole role_in(const AllreducePlan& plan, const ReduceBucket& bucket, Rank self);

}  // namespace motley
