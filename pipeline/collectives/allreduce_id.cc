#include "pipeline/collectives/allreduce_id.h"

#include <fmt/format.h>

namespace motley {

static_assert(kReducePhases == BucketPhase::kPhases);

std::string to_words(const AllreduceId& id) {
  return is_allreduce_of_tied(id.kind) ? "the tied parameter"
                                       : fmt::format("chunk {}", id.chunk.value);
}

// In a phase of a bucket a rank sends at most one message to each other rank, except that it sends
// one for each segment; these have the same id and arrive in the order of sending.
FrameId frame_of(const AllreduceId& id, std::size_t bucket, ReducePhase phase, std::int64_t step) {
  const BucketPhase part{static_cast<std::int32_t>(bucket), static_cast<std::int32_t>(phase)};
  return FrameId::allreduce(id.kind, id.chunk, part, step);
}

}  // namespace motley
