// LayerBench: one layer of a model alone, timed as it runs in a chain.
//
// Times are processor seconds of the calling thread, whose medians are steady. Before each forward
// and each backward the caches are filled with other memory, as much as the model's other layers
// take: on its own, a layer would find its parameters where the last run left them and seem faster
// than it is in a step. In every second run also between the two parts of backward, which gives the
// time of a weight part that is put off; the others give the time of the two in a row.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "measure/cache_eviction.h"
#include "models/layers/chain.h"
#include "models/spec/model_spec.h"
#include "plan/profile.h"
#include "protocol/protocol.h"

namespace motley {

class LayerBench {
 public:
  // `job` and `model` must outlive it.
  LayerBench(const Job& job, const ModelSpec& model, int layer);

  // Forward and backward of a micro-batch of that many samples: medians of repeated runs.
  [[nodiscard]] LayerSample measure(int samples);

 private:
  struct Times {
    double forward_s = 0;
    double input_s = 0;   // of backward's two parts
    double weight_s = 0;  // the second
    std::int64_t saved_bytes = 0;
    std::int64_t queued_bytes = 0;
  };

  // apart: with other memory in the caches between the parts of backward.
  [[nodiscard]] Times run_once(int samples, bool apart, CacheEviction& others);
  // The peak of its tensors beyond what stays kept, in a run that is not timed.
  [[nodiscard]] std::int64_t measure_workspace(int samples, std::int64_t saved_bytes);
  [[nodiscard]] at::Tensor make_input(int samples) const;
  [[nodiscard]] at::Tensor make_targets(int samples) const;
  at::Tensor forward(at::Tensor input, const at::Tensor& targets);
  // The two parts; the second is nothing but chain_.backward_weight().
  void backward_input(at::Tensor gradient);

  const ModelSpec& model_;
  int layer_;
  LayerChain chain_;
};

}  // namespace motley
