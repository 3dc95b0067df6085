// LayerBench: one layer of a model alone, timed as it runs in a chain.
//
// Times are a Stopwatch's, whose medians are steady. On the processor, before each forward
// and each backward the caches are filled with other memory, as much as the model's other layers
// take: on its own, a layer would find its parameters where the last run left them and seem faster
// than it is in a step. On a device runs that are short follow each other without a wait, so that
// launching hides behind computing as it does in a step. Every second run times the two parts of
// backward apart, on the processor with the caches filled between them, which gives the time of a
// weight part that is put off; the others give the time of the two in a row.
//
// A run is repeated until the times are known well enough or the time for it is over, at least once
// with either kind of backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "measure/cache_eviction.h"
#include "measure/stopwatch.h"
#include "models/device/compute_device.h"
#include "models/layers/chain.h"
#include "models/spec/model_spec.h"
#include "plan/profile.h"
#include "protocol/protocol.h"

namespace motley {

class LayerBench {
 public:
  // `job` and `model` must outlive it.
  LayerBench(const Job& job, const ModelSpec& model, int layer, const ComputeDevice& device = {});

  struct Measured {
    LayerSample sample;
    double run_s = 0;  // on the clock, of one run with all that goes with it
  };

  struct Effort {
    double most_s = 0;    // runs are repeated for about so long at the most
    double enough_s = 0;  // and so long where there were ten of them by then
  };

  // Forward and backward of a micro-batch of that many samples: medians of repeated runs, fewer
  // where they agree. `on_run` is called after each.
  [[nodiscard]] Measured measure(int samples,
                                 const Effort& effort,
                                 const std::function<void()>& on_run = {});

  // Runs that measure() makes at least.
  static constexpr int kRunsMin = 3;

 private:
  struct Times {
    double forward_s = 0;
    double input_s = 0;   // of backward's two parts
    double weight_s = 0;  // the second
  };

  struct KeptBytes {
    std::int64_t saved = 0;
    std::int64_t queued = 0;
  };

  static constexpr std::size_t kMarks = 6;  // of a run

  // Marks the beginnings and ends of its parts. `input` is copied.
  // apart: with other memory in the caches between the parts of backward.
  // `others`: nullptr where there are no caches to fill.
  KeptBytes run_once(const at::Tensor& input,
                     const at::Tensor& targets,
                     bool apart,
                     CacheEviction* others);
  [[nodiscard]] static Times times_of(std::span<const double> marks_s);
  // How many runs follow each other before their times are read.
  [[nodiscard]] int runs_in_a_row(const std::vector<double>& total_s) const;
  // The peak of its tensors beyond what stays kept. The run is not timed, so that it may be the one
  // that touches memory for the first time.
  [[nodiscard]] std::int64_t measure_workspace(int samples);
  [[nodiscard]] at::Tensor make_input(int samples) const;
  [[nodiscard]] at::Tensor make_targets(int samples) const;
  // Of what forward returned; undefined where it ends in the loss.
  [[nodiscard]] at::Tensor make_gradient(const at::Tensor& output) const;
  at::Tensor forward(at::Tensor input, const at::Tensor& targets);
  // The two parts; the second is nothing but chain_.backward_weight().
  void backward_input(at::Tensor gradient);

  const ModelSpec& model_;
  const ComputeDevice device_;
  Stopwatch watch_;
  int layer_;
  LayerChain chain_;
};

}  // namespace motley
