#include "partitioner/cost/plan_memory.h"

#include <algorithm>

#include "base/check.h"

namespace motley {
namespace {

using MemoryParts = CostModel::MemoryParts;

// What a rank needs of one of its chunks.
struct HeldChunk {
  ChunkId chunk;
  bool recompute = false;
  MemoryParts parts;

  // Of a micro-batch between forward and backward.
  [[nodiscard]] std::int64_t kept_bytes() const {
    return parts.boundary_bytes + (recompute ? 0 : parts.saved_bytes);
  }

  // While an action of it runs.
  [[nodiscard]] std::int64_t running_bytes(ActionKind kind) const {
    const bool has_saved = recompute && kind != ActionKind::kBackwardWeight;
    return parts.workspace_bytes + (has_saved ? parts.saved_bytes : 0);
  }

  // By how much the action changes what is held of micro-batches.
  [[nodiscard]] std::int64_t held_by(ActionKind kind) const {
    switch (kind) {
      case ActionKind::kForward:
        return kept_bytes();
      case ActionKind::kBackward:
        return -kept_bytes();
      case ActionKind::kBackwardInput:
        return parts.queued_bytes - kept_bytes();
      case ActionKind::kBackwardWeight:
        return -parts.queued_bytes;
      default:
        return 0;
    }
  }
};

bool computes(ActionKind kind) {
  return kind == ActionKind::kForward || kind == ActionKind::kBackward ||
         kind == ActionKind::kBackwardInput || kind == ActionKind::kBackwardWeight;
}

// Beyond what its chunks always need.
std::int64_t most_in_a_step(const std::vector<HeldChunk>& chunks,
                            const std::vector<Action>& actions) {
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const Action& action : actions) {
    if (!computes(action.kind)) continue;
    const auto chunk = std::ranges::find(chunks, action.chunk, &HeldChunk::chunk);
    MOTLEY_CHECK(chunk != chunks.end(), "{} of a chunk of others", to_text(action));
    const std::int64_t before = held;
    held += chunk->held_by(action.kind);
    most = std::max(most, std::max(before, held) + chunk->running_bytes(action.kind));
  }
  return most;
}

std::int64_t peak_of(const std::vector<HeldChunk>& chunks, const std::vector<Action>& actions) {
  std::int64_t always = 0;
  for (const HeldChunk& chunk : chunks) {
    always += chunk.parts.fixed_bytes + 2 * chunk.parts.boundary_bytes;
  }
  return chunks.front().parts.baseline_bytes +
         MemoryParts::resident(always + most_in_a_step(chunks, actions));
}

}  // namespace

std::vector<std::int64_t> peak_memory_bytes(const Schedule& schedule,
                                            const Plan& plan,
                                            const CostModel& cost,
                                            const std::vector<int>& rank_slots) {
  std::vector<std::vector<HeldChunk>> chunks_of(plan.ranks.size());
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const ChunkPlan& chunk = plan.chunks[c];
    const int last = chunk.first_layer + chunk.layer_count;
    for (const Replica& replica : chunk.replicas) {
      const std::size_t r = replica.rank.index();
      chunks_of[r].push_back(
          {ChunkId{static_cast<std::int32_t>(c)}, chunk.recompute,
           cost.memory_parts(rank_slots[r], chunk.first_layer, last, plan.micro_batch)});
    }
  }
  std::vector<std::int64_t> peaks;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    peaks.push_back(peak_of(chunks_of[r], schedule.ranks[r]));
  }
  return peaks;
}

}  // namespace motley
