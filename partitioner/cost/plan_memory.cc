#include "partitioner/cost/plan_memory.h"

#include <algorithm>

namespace motley {
namespace {

// Micro-batches between forward and backward.
int in_flight(const Plan& plan, std::size_t chunk) {
  if (plan.schedule == "gpipe") return plan.micro_batches;
  const int behind = plan.chunk_count() - static_cast<int>(chunk);
  const int told = plan.chunks[chunk].in_flight;
  return std::min(told > 0 ? told : behind, plan.micro_batches);
}

int queued_weights(const Plan& plan, std::size_t chunk) {
  if (plan.schedule != "split") return 0;
  const int told = plan.chunks[chunk].queued_weights;
  return told > 0 ? told : in_flight(plan, 0);
}

}  // namespace

std::int64_t rank_memory_bytes(const Plan& plan, const CostModel& cost, int slot, Rank rank) {
  std::int64_t bytes = 0;
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    const ChunkPlan& chunk = plan.chunks[c];
    const auto replica = std::ranges::find(chunk.replicas, rank, &Replica::rank);
    if (replica == chunk.replicas.end()) continue;
    const int last = chunk.first_layer + chunk.layer_count;
    const int share = replica->micro_batches;
    if (bytes > 0) {
      bytes -= cost.fixed_memory(slot, chunk.first_layer, last, plan.micro_batch).baseline_bytes;
    }
    bytes += cost.memory_bytes(slot, chunk.first_layer, last, plan.micro_batch,
                               in_flight_of_share(in_flight(plan, c), share, plan.micro_batches),
                               chunk.recompute, std::min(queued_weights(plan, c), share));
  }
  return bytes;
}

}  // namespace motley
