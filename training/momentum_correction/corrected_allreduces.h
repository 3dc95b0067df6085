// CorrectedAllreduces: which all-reduces of a run carry momentum-corrected gradients, and the
// consequences.
//
// With train.optimizer = "sgd" and topk all-reduces, each machine applies the momentum to its own
// gradient before it selects the values to send (compression/feedback/gradient_compressor.h). The
// result already contains the momentum, so the optimizer applies none to it. This holds for every
// all-reduce between machines; all other parameters have the optimizer's momentum.
//
// A momentum-corrected gradient contains the gradients of many steps, so its norm does not bound
// theirs. Instead, train.clip bounds each rank's contribution to such all-reduces and, separately,
// the gradients outside them. The squared norms of independent gradients add up. A rank that
// computes the share s of the micro-batches, for the share p of the parameters, is bounded by
// train.clip times the root of s p. With the whole model on each of N ranks of equal shares that is
// train.clip / sqrt(N).
//
// All are pure functions of inputs that every rank knows.
#pragma once

#include <vector>

#include "base/ids.h"
#include "compression/feedback/gradient_compressor.h"
#include "models/spec/model_spec.h"
#include "plan/plan.h"
#include "run_config/config.h"

namespace motley {

struct CorrectedAllreduces {
  float momentum = 0;          // applied by senders; 0 = no momentum correction
  std::vector<bool> chunks;    // [ChunkId]: the all-reduce over its replicas is corrected
  bool tied = false;           // the all-reduce of the tied parameter is corrected
  std::vector<bool> layers;    // [layer] has a corrected parameter; empty = none has
  double parameter_share = 0;  // share of the corrected parameters in the model's
};

// tied_across_ranks: as in partitioner/search/planner.h. REQUIRES: a validated configuration, a
// plan of the model.
[[nodiscard]] CorrectedAllreduces corrected_allreduces(const Config& config,
                                                       const Plan& plan,
                                                       const ModelSpec& model,
                                                       bool tied_across_ranks);

// How the plan's all-reduces are compressed between machines.
[[nodiscard]] CompressorOptions allreduce_compression(const CorrectedAllreduces& allreduces,
                                                      const CompressionConfig& config,
                                                      const Plan& plan);

// The largest norm of the rank's contribution to corrected all-reduces, as a sum over its tokens; 0
// = unlimited.
[[nodiscard]] double local_clip(const CorrectedAllreduces& allreduces,
                                const Config& config,
                                const Plan& plan,
                                const ModelSpec& model,
                                Rank self);

}  // namespace motley
