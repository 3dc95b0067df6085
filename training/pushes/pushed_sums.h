// PushedSums: which sums of a run are of pushes instead of gradients, and what follows of it.
//
// With train.optimizer = "sgd" and sums by topk, each machine applies the momentum to its own
// gradient before it selects what it sends (compression/feedback/gradient_compressor.h): the sum
// that comes out is a push, to which the optimizer applies no momentum again. So it is wherever a
// sum leaves a machine; all other parameters of the run have the optimizer's momentum as ever.
//
// A push holds the gradients of many steps, so that its norm says nothing of theirs: train.clip
// bounds what each rank gives to such sums instead, and beside it what is not pushed. Of
// independent gradients the squared norms add up: a rank that computes the share s of the
// micro-batches, for the share p of the parameters, is bounded by train.clip times the root of s p.
// With the whole model on each of N ranks of equal shares that is train.clip / sqrt(N).
//
// All are pure functions of what every rank knows.
#pragma once

#include <vector>

#include "base/ids.h"
#include "compression/feedback/gradient_compressor.h"
#include "job/config.h"
#include "models/spec/model_spec.h"
#include "plan/plan.h"

namespace motley {

struct PushedSums {
  float momentum = 0;          // that senders apply; 0 = no sum is of pushes
  std::vector<bool> chunks;    // [ChunkId]: the sum over the chunk's replicas is
  bool tied = false;           // that of the tied parameter is
  std::vector<bool> layers;    // [layer] has a parameter whose sum is; empty = none has
  double parameter_share = 0;  // of all the model's parameters, those
};

// tied_across_ranks: as partitioner/search/planner.h has it. REQUIRES: a validated configuration, a
// plan of the model.
[[nodiscard]] PushedSums pushed_sums(const Config& config,
                                     const Plan& plan,
                                     const ModelSpec& model,
                                     bool tied_across_ranks);

// How the plan's sums are compressed between machines.
[[nodiscard]] CompressorOptions sum_compression(const PushedSums& sums,
                                                const CompressionConfig& config,
                                                const Plan& plan);

// The largest norm of what the rank's gradients, sums over its tokens, give to pushes; 0 = any.
[[nodiscard]] double local_clip(const PushedSums& sums,
                                const Config& config,
                                const Plan& plan,
                                const ModelSpec& model,
                                Rank self);

}  // namespace motley
