// StepBytes: the bytes on the wire of a plan's training step, each frame with its header. The
// simulator's messages, the explanations' links and the report's predictions use these counts;
// tests/simulated/wire_bytes_test.cc compares them with what the executor sends.
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

// The size of that many values encoded by a rank's codec, in bytes without the header.
using PayloadBytes =
    std::function<double(Rank from, std::int64_t values, const std::string& codec)>;

// What one rank sends another in a phase of an all-reduce, as if each machine's part were one
// bucket: the overlap gained by smaller buckets is short relative to the transfers. The bytes are
// those of all frames of the real buckets.
struct AllreduceBytes {
  ReduceMessage message;
  std::string codec;
  double bytes = 0;
};

class StepBytes {
 public:
  StepBytes(const Plan& plan, const ModelSizes& model, const PayloadBytes& payload);

  // One activation, and one gradient, over the boundary after the chunk.
  [[nodiscard]] double activation(std::size_t chunk) const { return activations_[chunk]; }

  [[nodiscard]] double gradient(std::size_t chunk) const { return gradients_[chunk]; }

  // The targets of one micro-batch.
  [[nodiscard]] double targets() const { return targets_; }

  // The rank's vote, and rank 0's answer to each other one.
  [[nodiscard]] double vote(std::size_t rank) const { return votes_[rank]; }

  [[nodiscard]] double vote_result() const { return vote_result_; }

  // The all-reduce of the chunk's gradient over its replicas; empty without replicas.
  [[nodiscard]] const std::vector<AllreduceBytes>& allreduce(std::size_t chunk) const {
    return allreduces_[chunk];
  }

  // The all-reduce of a tied parameter's gradient over the ranks of the first chunk and the last.
  [[nodiscard]] const std::vector<AllreduceBytes>& tied_allreduce() const {
    return allreduces_.back();
  }

 private:
  void count_votes(const Plan& plan, const std::vector<CopyGroup>& copies);

  std::vector<double> activations_;                      // [ChunkId]
  std::vector<double> gradients_;                        // [ChunkId]
  std::vector<double> votes_;                            // [Rank]
  std::vector<std::vector<AllreduceBytes>> allreduces_;  // [ChunkId], and the tied one
  double targets_ = 0;
  double vote_result_ = 0;
};

// The bytes that each rank sends in a step. [Rank] With rounds (plan/rounds/rounds_plan.h): the
// mean over a round, without all-reduces inside islands.
[[nodiscard]] std::vector<double> sent_bytes(const Plan& plan, const StepBytes& bytes);
// The same by sender and receiver, for pairs that send anything.
[[nodiscard]] std::map<std::pair<Rank, Rank>, double> pair_bytes(const Plan& plan,
                                                                 const StepBytes& bytes);

}  // namespace motley
