#include "pipeline/execute/unexpected_bytes.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/check.h"
#include "comm/transport/transport.h"
#include "comm/transport/unexpected_message_quota.h"
#include "compression/make_codec.h"
#include "pipeline/collectives/hierarchical_allreduce.h"
#include "pipeline/schedule/action_rules.h"

namespace motley {
namespace {

constexpr std::uint64_t kFrameBytes = kFrameHeaderBytes + kUnexpectedMessageBytes;

// The maximum bytes of one frame over a chunk's boundary.
struct BoundaryFrames {
  std::uint64_t activation = 0;
  std::uint64_t gradient = 0;
};

// [ChunkId]
std::vector<BoundaryFrames> boundary_frames(const Plan& plan, const MessageSizes& sizes) {
  std::vector<BoundaryFrames> frames;
  for (std::size_t chunk = 0; chunk + 1 < plan.chunks.size(); ++chunk) {
    const auto codec = make_codec(plan.chunks[chunk].codec);
    MOTLEY_CHECK(codec.ok(), "the plan's codecs were checked");
    const BoundarySize& size = sizes.boundaries[chunk];
    const std::uint64_t coded =
        (*codec)->bytes_max(static_cast<std::size_t>(size.floats)) + kFrameBytes;
    frames.push_back({coded + static_cast<std::uint64_t>(size.exact_bytes), coded});
  }
  return frames;
}

// Messages in flight of one all-reduce: those of a bucket take about four times its memory.
std::uint64_t allreduce_bytes() {
  constexpr std::uint64_t kBucketsOfMemory = 4;
  const auto window = static_cast<std::uint64_t>(HierarchicalAllreduceOptions{}.window);
  return window * kBucketsOfMemory * (kBucketValues * sizeof(float) + kFrameBytes);
}

bool both_in(const std::vector<Rank>& group_members, Rank one, Rank other) {
  return std::ranges::find(group_members, one) != group_members.end() &&
         std::ranges::find(group_members, other) != group_members.end();
}

}  // namespace

std::uint64_t unexpected_bytes_max(const Plan& plan,
                                   const Schedule& schedule,
                                   const MessageSizes& sizes,
                                   Rank self) {
  const std::vector<BoundaryFrames> boundaries = boundary_frames(plan, sizes);
  const ActionRules rules(schedule.owners);
  const std::uint64_t targets = sizes.targets * sizeof(std::int32_t) + kFrameBytes;
  const auto frame_bytes = [&](const Value& value) {
    if (value.kind == ValueKind::kTargets) return targets;
    const BoundaryFrames& frames = boundaries[rules.boundary(value).index()];
    return value.kind == ValueKind::kGradient ? frames.gradient : frames.activation;
  };
  // Every rank's vote comes back from the centre, each with its length.
  const std::uint64_t votes =
      schedule.ranks.size() * (sizes.vote_bytes_max + sizeof(std::uint32_t)) + kFrameBytes;
  std::uint64_t most = 0;
  for (Rank peer{0}; peer.index() < schedule.ranks.size(); ++peer.value) {
    if (peer == self) continue;
    std::uint64_t bytes = votes;
    bool sums_tied = false;
    for (const Action& action : schedule.ranks[peer.index()]) {
      const auto value = rules.sent_by(action);
      if (value && rules.user(*value) == self) bytes += frame_bytes(*value);
      sums_tied = sums_tied || action.kind == ActionKind::kReduceTied;
    }
    for (ChunkId chunk{0}; chunk <= rules.last_chunk(); ++chunk.value) {
      if (both_in(schedule.group_members(chunk), self, peer)) bytes += allreduce_bytes();
    }
    if (sums_tied && both_in(schedule.end_ranks(), self, peer)) bytes += allreduce_bytes();
    most = std::max(most, bytes);
  }
  return 2 * most;
}

}  // namespace motley
