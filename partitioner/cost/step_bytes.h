// StepBytes: how many bytes everything takes that crosses the wire in a training step of a plan,
// each frame with its header. The simulator's messages, the explanations' links and the report's
// predictions are all counted here; what the executor really sends is held against it by
// tests/rehearsal/wire_bytes_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "partitioner/cost/model_sizes.h"
#include "pipeline/schedule/allreduce_plan.h"
#include "pipeline/schedule/copy_groups.h"
#include "plan/plan.h"

namespace motley {

// The bytes that a rank's codec makes of that many values, without the header.
using PayloadBytes =
    std::function<double(Rank from, std::int64_t values, const std::string& codec)>;

// What one rank gives another in a phase of a sum, as if each machine's part were one bucket: what
// buckets overlap by being cut finer is less than what the links take. The bytes are those of all
// the frames that the buckets really take.
struct SumBytes {
  ReduceMessage message;
  std::string codec;
  double bytes = 0;
};

class StepBytes {
 public:
  StepBytes(const Plan& plan, const ModelSizes& model, const PayloadBytes& payload);

  // An activation over the boundary after the chunk, and a gradient.
  [[nodiscard]] double activation(std::size_t chunk) const { return activations_[chunk]; }

  [[nodiscard]] double gradient(std::size_t chunk) const { return gradients_[chunk]; }

  // The targets of one micro-batch.
  [[nodiscard]] double targets() const { return targets_; }

  // What the rank gives to the vote, and what rank 0 answers each other one.
  [[nodiscard]] double vote(std::size_t rank) const { return votes_[rank]; }

  [[nodiscard]] double verdict() const { return verdict_; }

  // The sum of the chunk's gradient over its replicas; empty without them.
  [[nodiscard]] const std::vector<SumBytes>& sum(std::size_t chunk) const { return sums_[chunk]; }

  // The sum of a tied parameter's gradient over the ranks of the first chunk and the last.
  [[nodiscard]] const std::vector<SumBytes>& tied_sum() const { return sums_.back(); }

 private:
  void count_votes(const Plan& plan, const std::vector<CopyGroup>& copies);

  std::vector<double> activations_;          // [ChunkId]
  std::vector<double> gradients_;            // [ChunkId]
  std::vector<double> votes_;                // [Rank]
  std::vector<std::vector<SumBytes>> sums_;  // [ChunkId], and the tied one
  double targets_ = 0;
  double verdict_ = 0;
};

// What each rank sends in a step. [Rank]
[[nodiscard]] std::vector<double> sent_bytes(const Plan& plan, const StepBytes& bytes);
// The same by who sends to whom, of the pairs that send anything.
[[nodiscard]] std::map<std::pair<Rank, Rank>, double> pair_bytes(const Plan& plan,
                                                                 const StepBytes& bytes);

}  // namespace motley
