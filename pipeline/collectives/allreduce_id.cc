#include "pipeline/collectives/allreduce_id.h"

#include <fmt/format.h>

namespace motley {

static_assert(kReducePhases == BucketPhase::kPhases);

std::string to_words(const AllreduceId& id) {
  const bool is_tied =
      id.kind == FrameKind::kTiedGradient || id.kind == FrameKind::kTiedPseudoGradient;
  return is_tied ? "the tied parameter" : fmt::format("chunk {}", id.chunk.value);
}

// In a phase of a bucket a rank sends at most one message to each other rank, except that it sends
// one for each segment; these have the same id and arrive in the order of sending.
FrameId frame_of(const AllreduceId& id, std::size_t bucket, ReducePhase phase, std::int64_t step) {
  const BucketPhase part{static_cast<std::int32_t>(bucket), static_cast<std::int32_t>(phase)};
  switch (id.kind) {
    case FrameKind::kTiedGradient:
      return FrameId::tied_allreduce(part, step);
    case FrameKind::kPseudoGradient:
      return FrameId::pseudo_gradient(id.chunk, part, step);
    case FrameKind::kTiedPseudoGradient:
      return FrameId::tied_pseudo_gradient(part, step);
    default:
      return FrameId::replica_allreduce(id.chunk, part, step);
  }
}

}  // namespace motley
