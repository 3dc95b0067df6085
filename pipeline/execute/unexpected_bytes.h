// The bytes that a peer may send before this rank asks for them, according to the plan. They bound
// the memory of unexpected messages (comm/transport/unexpected_message_quota.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/wire_sizes.h"
#include "pipeline/schedule/action.h"
#include "plan/plan.h"

namespace motley {

// Sizes of a micro-batch's values and of a vote.
struct MessageSizes {
  std::span<const BoundarySize> boundaries;  // [ChunkId], after each chunk but the last
  std::size_t targets = 0;
  std::size_t vote_bytes_max = 0;
};

// Twice the most that any one peer may send to `self` between two votes: a peer that has finished a
// vote may begin the next step while this rank still reads the vote. No peer gets further ahead,
// because a vote needs this rank's own. Includes the overhead of storing a message. REQUIRES: the
// schedule is valid and generated from the plan.
[[nodiscard]] std::uint64_t unexpected_bytes_max(const Plan& plan,
                                                 const Schedule& schedule,
                                                 const MessageSizes& sizes,
                                                 Rank self);

}  // namespace motley
