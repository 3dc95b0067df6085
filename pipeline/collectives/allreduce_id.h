// AllreduceId: names the gradients of one all-reduce. Several all-reduces may run between two ranks
// at once; each message carries the id of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/ids.h"
#include "comm/frames/frame_link.h"
#include "pipeline/schedule/allreduce_plan.h"

namespace motley {

struct AllreduceId {
  FrameKind kind = FrameKind::kReplicaAllreduce;  // is_allreduce
  ChunkId chunk;                                  // 0 of a tied parameter

  friend auto operator<=>(const AllreduceId&, const AllreduceId&) = default;
};

[[nodiscard]] std::string to_words(const AllreduceId& id);  // "chunk 3", "the tied parameter"

// The largest number of buckets that the messages of an all-reduce can number.
inline constexpr std::size_t kBucketsMax = (std::size_t{1} << 24) / kReducePhases;

// The frame id of a bucket's messages in a phase of a step. REQUIRES: bucket < kBucketsMax.
[[nodiscard]] FrameId frame_of(const AllreduceId& id,
                               std::size_t bucket,
                               ReducePhase phase,
                               std::int64_t step);

}  // namespace motley
