// StepPrices: the cost of everything that a rank does in a step, and the size of each message on
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

// Seconds of the compute stream at the two ends of a message: the codec and the cost of a message.
struct MessagePrice {
  double send_s = 0;
  double receive_s = 0;
};

// The costs of a chunk on one of its ranks.
struct MemberPrice {
  PricedTime forward;
  PricedTime backward;        // with the second forward if the chunk recomputes
  PricedTime backward_input;  // its two parts, if known
  PricedTime backward_weight;
  double optimizer_s = 0;
  MessagePrice before;  // at the boundary before the chunk: sends gradients
  MessagePrice after;   // at the boundary after it: sends activations
};

// A message of an all-reduce.
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
  [[nodiscard]] const MemberPrice& of(std::size_t chunk, std::size_t rank) const;

  // The messages of the chunk's all-reduce over its replicas (AllreduceBytes). Empty without
  // replicas.
  [[nodiscard]] const std::vector<ReducePrice>& reduce(std::size_t chunk) const {
    return reduces_[chunk];
  }

  // The same for a tied parameter, over all ranks that hold a use of it.
  [[nodiscard]] const std::vector<ReducePrice>& reduce_tied() const { return reduces_.back(); }

  // Bytes on the wire, with the header of the frame. [ChunkId] after the chunk; [Rank] its vote.
  [[nodiscard]] double activation_bytes(std::size_t chunk) const {
    return bytes_.activation(chunk);
  }

  [[nodiscard]] double gradient_bytes(std::size_t chunk) const { return bytes_.gradient(chunk); }

  [[nodiscard]] double vote_bytes(std::size_t rank) const { return bytes_.vote(rank); }

  [[nodiscard]] double vote_result_bytes() const { return bytes_.vote_result(); }

  [[nodiscard]] double target_bytes() const { return bytes_.targets(); }

  // For a message too small for its bytes to matter.
  [[nodiscard]] double small_message_s(std::size_t rank) const { return small_message_s_[rank]; }

 private:
  void price_chunk(const Plan& plan, std::size_t chunk);
  [[nodiscard]] std::vector<ReducePrice> price_allreduce(
      const std::vector<AllreduceBytes>& messages) const;
  [[nodiscard]] MessagePrice message(int slot, double floats, const std::string& codec) const;
  [[nodiscard]] BoundarySize size_after(const Plan& plan, std::size_t chunk) const;

  const CostModel& cost_;
  const std::vector<int>& rank_slots_;
  const StepBytes bytes_;
  std::vector<std::size_t> first_member_;          // [ChunkId], and the total number
  std::vector<std::size_t> members_;               // ranks, chunk after chunk
  std::vector<MemberPrice> prices_;                // parallel to members_
  std::vector<std::vector<ReducePrice>> reduces_;  // [ChunkId], and the tied one
  std::vector<double> small_message_s_;            // [Rank]
};

}  // namespace motley
