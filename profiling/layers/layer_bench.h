// LayerBench: times one layer of a model as it runs in a chain.
//
// Times are medians of a Stopwatch's. On the processor, before each forward and each backward the
// caches are filled with other memory, as much as the model's other layers use: otherwise a layer
// would find its parameters in the caches and appear faster than in a step. On a device, short runs
// follow each other without a wait, so that launches overlap with computing as in a step. Every
// second run times the two parts of backward separately, on the processor with the caches filled
// between them; this gives the time of a deferred weight part. The other runs time the two parts in
// a row.
//
// A run is repeated until the times are known well enough or its time budget is used up, at least
// once with each kind of backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/throttle/compute_throttle.h"
#include "models/device/compute_device.h"
#include "models/layers/chain.h"
#include "models/spec/model_spec.h"
#include "plan/profile.h"
#include "profiling/cache_eviction.h"
#include "profiling/layers/stopwatch.h"
#include "protocol/protocol.h"

namespace motley {

class LayerBench {
 public:
  // `job` and `model` must outlive it.
  LayerBench(const Job& job, const ModelSpec& model, int layer, const ComputeDevice& device = {});

  struct Measured {
    LayerSample sample;
    double run_s = 0;  // wall-clock time of one run, with all overhead
  };

  struct Effort {
    double most_s = 0;    // approximate upper limit for the repetitions
    double enough_s = 0;  // the limit once there were ten runs
  };

  // Forward and backward of a micro-batch of that many samples: medians of repeated runs, fewer if
  // they agree. `on_run` is called after each run.
  [[nodiscard]] Measured measure(int samples,
                                 const Effort& effort,
                                 const std::function<void()>& on_run = {});

  // The minimum number of runs of measure().
  static constexpr int kRunsMin = 3;

 private:
  struct Times {
    double forward_s = 0;
    double input_s = 0;   // the first part of backward
    double weight_s = 0;  // the second part
  };

  struct SavedBytes {
    std::int64_t saved = 0;
    std::int64_t queued = 0;
  };

  static constexpr std::size_t kMarks = 6;  // per run

  // Marks the beginning and end of each part of a run. `input` is copied. `apart`: with the caches
  // filled between the parts of backward. `others`: nullptr if there are no caches to fill.
  SavedBytes run_once(const at::Tensor& input,
                      const at::Tensor& targets,
                      bool apart,
                      CacheEviction* others);
  [[nodiscard]] static Times times_of(std::span<const double> timestamps_s);
  // The number of consecutive runs before their times are read.
  [[nodiscard]] int runs_in_a_row(const std::vector<double>& total_s) const;
  // The peak of its tensors beyond the saved ones. The run is not timed, so it may be the one that
  // touches memory for the first time.
  [[nodiscard]] std::int64_t measure_workspace(int samples);
  [[nodiscard]] at::Tensor make_input(int samples) const;
  [[nodiscard]] at::Tensor make_targets(int samples) const;
  // The gradient of an output of forward; undefined if the layer ends in the loss.
  [[nodiscard]] at::Tensor make_gradient(const at::Tensor& output) const;
  at::Tensor forward(at::Tensor input, const at::Tensor& targets);
  // The first of the two parts; the second is only chain_.backward_weight().
  void backward_input(at::Tensor gradient);

  const ModelSpec& model_;
  const ComputeDevice device_;
  Stopwatch watch_;
  ComputeThrottle throttle_;  // of the job, so that others find the cores as busy as in training
  int layer_;
  LayerChain chain_;
};

}  // namespace motley
