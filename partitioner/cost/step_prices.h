// StepPrices: what everything that a rank does in a step costs, and how large each message is on
// the wire, looked up once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/step_bytes.h"
#include "pipeline/schedule/allreduce_plan.h"
#include "plan/plan.h"

namespace motley {

// A time as measured: a normal distribution around the median.
struct PricedTime {
  double median_s = 0;
  double sigma_s = 0;
};

// Seconds of the compute stream at the two ends of a message: the codec and what any message takes.
struct MessagePrice {
  double send_s = 0;
  double receive_s = 0;
};

// Of a chunk on one of its ranks.
struct HolderPrice {
  PricedTime forward;
  PricedTime backward;        // with the second forward where the chunk recomputes
  PricedTime backward_input;  // its two parts, where they are known
  PricedTime backward_weight;
  double optimizer_s = 0;
  MessagePrice before;  // over the boundary before the chunk: sends gradients
  MessagePrice after;   // over the boundary after it: sends activations
};

// A message of a sum over ranks.
struct ReducePrice {
  ReduceMessage message;
  double bytes = 0;  // on the wire, with the header of the frame
  MessagePrice price;
};

class StepPrices {
 public:
  // REQUIRES: every codec of the plan was measured.
  StepPrices(const Plan& plan, const CostModel& cost, const std::vector<int>& rank_slots);

  // REQUIRES: the rank is one of the chunk's replicas.
  [[nodiscard]] const HolderPrice& of(std::size_t chunk, std::size_t rank) const;

  // The messages of summing the chunk's gradient over its replicas (SumBytes). None without
  // replicas.
  [[nodiscard]] const std::vector<ReducePrice>& reduce(std::size_t chunk) const {
    return reduces_[chunk];
  }

  // The same of a tied parameter, over all ranks that hold a use of it.
  [[nodiscard]] const std::vector<ReducePrice>& reduce_tied() const { return reduces_.back(); }

  // Bytes on the wire, with the header of the frame. [ChunkId] after the chunk; [Rank] its vote.
  [[nodiscard]] double activation_bytes(std::size_t chunk) const {
    return bytes_.activation(chunk);
  }

  [[nodiscard]] double gradient_bytes(std::size_t chunk) const { return bytes_.gradient(chunk); }

  [[nodiscard]] double vote_bytes(std::size_t rank) const { return bytes_.vote(rank); }

  [[nodiscard]] double verdict_bytes() const { return bytes_.verdict(); }

  [[nodiscard]] double target_bytes() const { return bytes_.targets(); }

  // Of a message that is too small for its bytes to matter.
  [[nodiscard]] double small_message_s(std::size_t rank) const { return small_message_s_[rank]; }

 private:
  void price_chunk(const Plan& plan, std::size_t chunk);
  [[nodiscard]] std::vector<ReducePrice> price_sum(const std::vector<SumBytes>& messages) const;
  [[nodiscard]] MessagePrice message(int slot, double floats, const std::string& codec) const;
  [[nodiscard]] BoundarySize size_after(const Plan& plan, std::size_t chunk) const;

  const CostModel& cost_;
  const std::vector<int>& rank_slots_;
  const StepBytes bytes_;
  std::vector<std::size_t> first_holder_;          // [ChunkId], and the number of all
  std::vector<std::size_t> holders_;               // ranks, chunk after chunk
  std::vector<HolderPrice> prices_;                // beside holders_
  std::vector<std::vector<ReducePrice>> reduces_;  // [ChunkId], and of what is tied
  std::vector<double> small_message_s_;            // [Rank]
};

}  // namespace motley
