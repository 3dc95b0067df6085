#include "measure/layer_bench.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>

#include "base/clock.h"
#include "base/median.h"
#include "measure/allocation_meter.h"

namespace motley {
namespace {

constexpr double kMeasure_s = 0.2;  // per layer and size, after the warm-up
constexpr int kRunsMin = 10;        // five with each kind of backward
constexpr int kRunsMax = 200;
const MicroContext kMicro{1, 1, 0, true};

// What a step touches between two visits of the layer: values and gradients of the model's other
// layers, and their tensors, whose sum is some 16 times what a layer hands on.
std::int64_t bytes_of_others(const ModelSpec& model, int layer, int samples) {
  constexpr std::int64_t kTensorsPerOutput = 16;
  std::int64_t floats = 0;
  for (int l = 0; l < static_cast<int>(model.layers.size()); ++l) {
    const LayerSpec& other = model.layers[static_cast<std::size_t>(l)];
    if (l == layer) continue;
    floats +=
        2 * other.parameter_count() + kTensorsPerOutput * samples * other.output_floats_per_sample;
  }
  return floats * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

LayerBench::LayerBench(const Job& job, const ModelSpec& model, int layer)
    : model_(model), layer_(layer), chain_(job.config.model, model, layer, layer + 1) {
  chain_.initialize(job.config.train.seed);
}

LayerSample LayerBench::measure(int samples) {
  LayerSample sample;
  sample.micro_batch = samples;
  std::vector<double> forward_s;
  std::vector<double> backward_s;
  std::vector<double> input_s;
  std::vector<double> weight_s;
  CacheEviction others(bytes_of_others(model_, layer_, samples));
  const double until_s = now_s() + kMeasure_s;
  for (int run = -1; run < kRunsMin || (now_s() < until_s && run < kRunsMax); ++run) {
    const bool apart = run % 2 != 0;
    const Times times = run_once(samples, apart, others);
    if (run < 0) continue;  // the first run touches memory for the first time
    forward_s.push_back(times.forward_s);
    input_s.push_back(times.input_s);
    if (apart) {
      weight_s.push_back(times.weight_s);
    } else {
      backward_s.push_back(times.input_s + times.weight_s);
    }
    sample.saved_bytes = times.saved_bytes;
    sample.split = {0, 0, times.queued_bytes};
  }
  sample.workspace_bytes = measure_workspace(samples, sample.saved_bytes);
  const MedianAndSpread forward = median_and_spread(std::move(forward_s));
  const MedianAndSpread backward = median_and_spread(std::move(backward_s));
  sample.forward_s = forward.median;
  sample.forward_spread_s = forward.spread;
  sample.backward_s = backward.median;
  sample.backward_spread_s = backward.spread;
  sample.split->input_s = std::min(median(std::move(input_s)), sample.backward_s);
  sample.split->weight_s = median(std::move(weight_s));
  return sample;
}

LayerBench::Times LayerBench::run_once(int samples, bool apart, CacheEviction& others) {
  Times times;
  const at::Tensor targets = make_targets(samples);
  others.run();
  at::Tensor input = make_input(samples);  // after the others: the layer before just wrote it
  const double start_s = thread_cpu_s();
  at::Tensor output = forward(std::move(input), targets);
  times.forward_s = thread_cpu_s() - start_s;
  times.saved_bytes = chain_.saved_bytes(kMicro.micro);
  others.run();
  at::Tensor gradient = chain_.ends_in_loss() ? at::Tensor() : at::ones_like(output);
  const double input_start_s = thread_cpu_s();
  backward_input(std::move(gradient));
  times.input_s = thread_cpu_s() - input_start_s;
  times.queued_bytes = chain_.saved_bytes(kMicro.micro);
  if (apart) others.run();
  const double weight_start_s = thread_cpu_s();
  chain_.backward_weight(kMicro.micro);
  times.weight_s = thread_cpu_s() - weight_start_s;
  return times;
}

std::int64_t LayerBench::measure_workspace(int samples, std::int64_t saved_bytes) {
  AllocationMeter meter;
  at::Tensor output = forward(make_input(samples), make_targets(samples));
  const std::int64_t forward_bytes = meter.peak_bytes();
  at::Tensor gradient = chain_.ends_in_loss() ? at::Tensor() : at::ones_like(output);
  output.reset();
  backward_input(std::move(gradient));
  chain_.backward_weight(kMicro.micro);
  return std::max<std::int64_t>(0, std::max(forward_bytes, meter.peak_bytes()) - saved_bytes);
}

at::Tensor LayerBench::make_input(int samples) const {
  const std::int64_t tokens = model_.tokens_per_sample;
  if (layer_ == 0) return make_targets(samples);
  const auto& before = model_.layers[static_cast<std::size_t>(layer_) - 1];
  at::Tensor x = at::empty({samples, tokens, before.output_floats_per_sample / tokens});
  float* values = x.data_ptr<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) values[i] = std::sin(static_cast<float>(i));
  return x;
}

at::Tensor LayerBench::make_targets(int samples) const {
  at::Tensor tokens = at::empty({samples, model_.tokens_per_sample}, at::kLong);
  auto* values = tokens.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < tokens.numel(); ++i) values[i] = (i * 7919) % model_.vocab;
  return tokens;
}

at::Tensor LayerBench::forward(at::Tensor input, const at::Tensor& targets) {
  if (!chain_.ends_in_loss()) return chain_.forward(std::move(input), kMicro);
  (void)chain_.forward_loss(std::move(input), targets, kMicro);
  return {};
}

void LayerBench::backward_input(at::Tensor gradient) {
  (void)(chain_.ends_in_loss() ? chain_.backward_loss_input(kMicro)
                               : chain_.backward_input(std::move(gradient), kMicro));
}

}  // namespace motley
