#include "partitioner/cost/plan_memory.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/check.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/model_sizes.h"
#include "pipeline/schedule/allreduce_plan.h"
#include "pipeline/schedule/process_group.h"
#include "plan/gradient_group.h"

namespace motley {
namespace {

using MemoryParts = CostModel::MemoryParts;

// The memory of a rank for one of its chunks.
struct HeldChunk {
  ChunkId chunk;
  bool recompute = false;
  MemoryParts parts;

  // For a micro-batch between forward and backward.
  [[nodiscard]] std::int64_t retained_bytes() const {
    return parts.boundary_bytes + (recompute ? 0 : parts.saved_bytes);
  }

  // While one of its actions runs.
  [[nodiscard]] std::int64_t running_bytes(ActionKind kind) const {
    const bool has_saved = recompute && kind != ActionKind::kBackwardWeight;
    return parts.workspace_bytes + (has_saved ? parts.saved_bytes : 0);
  }

  // The change of the memory held for micro-batches by the action.
  [[nodiscard]] std::int64_t held_by(ActionKind kind) const {
    switch (kind) {
      case ActionKind::kForward:
        return retained_bytes();
      case ActionKind::kBackward:
        return -retained_bytes();
      case ActionKind::kBackwardInput:
        return parts.queued_bytes - retained_bytes();
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

// In addition to what its chunks always need.
struct StepMemory {
  std::int64_t held = 0;     // for micro-batches
  std::int64_t running = 0;  // for the action

  [[nodiscard]] std::int64_t bytes() const { return held + running; }
};

StepMemory most_in_a_step(const std::vector<HeldChunk>& chunks,
                          const std::vector<Action>& actions) {
  std::int64_t held = 0;
  StepMemory most;
  for (const Action& action : actions) {
    if (!computes(action.kind)) continue;
    const auto chunk = std::ranges::find(chunks, action.chunk, &HeldChunk::chunk);
    MOTLEY_CHECK(chunk != chunks.end(), "{} of a chunk of others", to_text(action));
    const std::int64_t before = held;
    held += chunk->held_by(action.kind);
    const StepMemory now{std::max(before, held), chunk->running_bytes(action.kind)};
    if (now.bytes() > most.bytes()) most = now;
  }
  return most;
}

// Adds, for each [Rank], the number of values that it encodes for other machines in an all-reduce
// over `ranks`.
void add_encoded(const Plan& plan,
                 const std::vector<Rank>& ranks,
                 std::int64_t values,
                 std::vector<std::int64_t>& encoded) {
  if (ranks.size() < 2 || values == 0) return;
  const ProcessGroup group = process_group(plan, ranks);
  if (group.machines.size() < 2) return;
  const AllreducePlan sum(group.machines, static_cast<std::size_t>(values), AllreducePlan::kWhole,
                          group.link_speeds);
  // Values for several machines are encoded once.
  std::set<std::tuple<ReducePhase, Rank, std::size_t>> seen;
  for (const ReduceMessage& message : sum.all_messages()) {
    const bool leaves = message.phase == ReducePhase::kCrossReduceScatter ||
                        message.phase == ReducePhase::kCrossAllGather;
    if (leaves && seen.insert({message.phase, message.from, message.values.first}).second) {
      encoded[message.from.index()] += static_cast<std::int64_t>(message.values.count);
    }
  }
}

// [Rank]
std::vector<std::int64_t> encoder_bytes(const Plan& plan, const CostModel& cost) {
  const ModelSizes& sizes = cost.sizes();
  std::vector<std::int64_t> encoded(plan.ranks.size(), 0);
  if (cost.encoder_bytes(1) == 0) return encoded;
  for (const ChunkPlan& chunk : plan.chunks) {
    const int end = chunk.first_layer + chunk.layer_count;
    add_encoded(plan, replica_ranks(chunk), sizes.reduced_parameters(chunk.first_layer, end),
                encoded);
  }
  add_encoded(plan, tied_parameter_ranks(plan), sizes.tied_parameters(), encoded);
  for (std::int64_t& each : encoded) each = cost.encoder_bytes(each);
  return encoded;
}

RankMemory peak_of(const std::vector<HeldChunk>& chunks,
                   const std::vector<Action>& actions,
                   std::int64_t encoder_bytes) {
  RankMemory memory;
  memory.sums = encoder_bytes;
  for (const HeldChunk& chunk : chunks) {
    memory.constants += chunk.parts.constant_bytes;
    memory.values += chunk.parts.value_bytes;
    memory.gradients += chunk.parts.gradient_bytes;
    memory.moments += chunk.parts.moment_bytes;
    memory.sums += chunk.parts.allreduce_bytes;
    memory.data += chunk.parts.data_bytes;
    memory.micro_batches += 2 * chunk.parts.boundary_bytes;
  }
  const StepMemory most = most_in_a_step(chunks, actions);
  memory.micro_batches += most.held;
  memory.workspace = most.running;
  memory.allocator = MemoryParts::allocator_bytes(memory.bytes());
  memory.process = chunks.front().parts.baseline_bytes;
  return memory;
}

}  // namespace

std::vector<RankMemory> peak_memory(const Schedule& schedule,
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
  const std::vector<std::int64_t> of_encoders = encoder_bytes(plan, cost);
  std::vector<RankMemory> peaks;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    peaks.push_back(peak_of(chunks_of[r], schedule.ranks[r], of_encoders[r]));
  }
  return peaks;
}

std::vector<std::int64_t> peak_memory_bytes(const Schedule& schedule,
                                            const Plan& plan,
                                            const CostModel& cost,
                                            const std::vector<int>& rank_slots) {
  std::vector<std::int64_t> bytes;
  for (const RankMemory& memory : peak_memory(schedule, plan, cost, rank_slots)) {
    bytes.push_back(memory.bytes());
  }
  return bytes;
}

}  // namespace motley
