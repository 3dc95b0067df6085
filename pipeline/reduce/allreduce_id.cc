#include "pipeline/reduce/allreduce_id.h"

#include <fmt/format.h>

namespace motley {

static_assert(kReducePhases == SumPart::kPhases);

std::string to_words(const AllreduceId& id) {
  return id.kind == FrameKind::kTiedGradient ? "the tied gradients"
                                             : fmt::format("chunk {}", id.chunk.value);
}

// A bucket has one message from each rank to each other in a phase, but for segments, which come in
// their order.
FrameId frame_of(const AllreduceId& id, std::size_t bucket, ReducePhase phase, std::int64_t step) {
  const SumPart part{static_cast<std::int32_t>(bucket), static_cast<std::int32_t>(phase)};
  return id.kind == FrameKind::kTiedGradient ? FrameId::tied_sum(part, step)
                                             : FrameId::replica_sum(id.chunk, part, step);
}

}  // namespace motley
