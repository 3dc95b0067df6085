// AllreduceId: which gradients a rank sums with others; several such sums may be under way between
// two ranks, and every message names its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/ids.h"
#include "comm/frames/frame_link.h"
#include "pipeline/schedule/allreduce_plan.h"

namespace motley {

struct AllreduceId {
  FrameKind kind = FrameKind::kReplicaSum;  // or kTiedGradient
  ChunkId chunk;                            // of kReplicaSum

  friend auto operator<=>(const AllreduceId&, const AllreduceId&) = default;
};

[[nodiscard]] std::string to_words(const AllreduceId& id);  // "chunk 3", "the tied gradients"

// The most buckets that the messages of a sum can number.
inline constexpr std::size_t kBucketsMax = (std::size_t{1} << 24) / kReducePhases;

// Names a bucket's messages in a phase. REQUIRES: bucket < kBucketsMax.
[[nodiscard]] FrameId frame_of(const AllreduceId& id,
                               std::size_t bucket,
                               ReducePhase phase,
                               std::int64_t step);

}  // namespace motley
