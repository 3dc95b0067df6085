// How much a peer may have sent before this rank asks for it, as the plan has it: what bounds the
// memory that messages take which nobody waits for yet (comm/transport/early_share.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/boundary_size.h"
#include "base/ids.h"
#include "pipeline/schedule/action.h"
#include "plan/plan.h"

namespace motley {

// Values of a micro-batch and of a vote.
struct MessageSizes {
  std::span<const BoundarySize> boundaries;  // [ChunkId], behind every chunk but the last
  std::size_t targets = 0;
  std::size_t vote_bytes_max = 0;
};

// The most that any one peer may send to `self` between two votes, and once more the same: a peer
// that has left a vote may begin the next step while this rank still reads the vote, and nobody
// gets further ahead, because a vote needs this rank's own. With what keeping a message costs.
// REQUIRES: the schedule is valid and the plan's.
[[nodiscard]] std::uint64_t early_bytes_max(const Plan& plan,
                                            const Schedule& schedule,
                                            const MessageSizes& sizes,
                                            Rank self);

}  // namespace motley
