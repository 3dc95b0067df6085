#include "profiling/layers/layer_bench.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <ATen/ATen.h>

#include "base/clock.h"
#include "base/median.h"
#include "models/device/product_type.h"
#include "models/layers/boundary_layout.h"
#include "profiling/layers/allocation_meter.h"

namespace motley {
namespace {

constexpr int kTimedMin = LayerBench::kRunsMin - 1;  // one with each kind of backward
constexpr int kAgreedMin = 6;                        // fewer runs give no estimate of the spread
constexpr double kAgreed = 0.01;                     // relative error of a median
constexpr int kEnoughRuns = 10;
constexpr int kRunsMax = 100;
const MicroContext kMicro{1, 1, 0, true};

// Whether a run times the parts of backward separately: every second one.
bool is_apart(int run) {
  return run % 2 != 0;
}

// The memory that a step accesses between two executions of the layer: values, gradients and
// constants of the model's other layers, and their tensors, together about 16 times a layer's
// output.
std::int64_t bytes_of_others(const ModelSpec& model, int layer, int samples) {
  constexpr std::int64_t kTensorsPerOutput = 16;
  std::int64_t bytes = 0;
  for (int l = 0; l < static_cast<int>(model.layers.size()); ++l) {
    const LayerSpec& other = model.layers[static_cast<std::size_t>(l)];
    if (l == layer) continue;
    bytes += 2 * other.parameter_count() * static_cast<std::int64_t>(sizeof(float)) +
             kTensorsPerOutput * other.boundary(samples).bytes() + other.constant_bytes();
  }
  return bytes;
}

at::Tensor wave(const std::vector<std::int64_t>& sizes) {
  at::Tensor x = at::empty(sizes);
  float* values = x.data_ptr<float>();
  for (std::int64_t i = 0; i < x.numel(); ++i) values[i] = std::sin(static_cast<float>(i));
  return x;
}

// A tensor of values that the data could contain; `limit`: the upper bound of its integers. Truth
// values are often masks, so they are true.
at::Tensor made_up(const TensorSpec& spec, std::int64_t limit, int samples) {
  const std::vector<std::int64_t> sizes = spec.sizes(samples);
  if (spec.type == Dtype::kFloat32) return wave(sizes);
  if (spec.type == Dtype::kBool) return at::ones(sizes, at::kBool);
  at::Tensor x = at::empty(sizes, at::kLong);
  auto* values = x.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < x.numel(); ++i) values[i] = (i * 7919) % limit;
  return x;
}

// The data's inputs, as the first layer takes them. An integer without a limit is 0, which is valid
// in every table.
at::Tensor made_up_inputs(const std::vector<SampleInput>& inputs, int samples) {
  std::vector<at::Tensor> tensors;
  for (const SampleInput& input : inputs) {
    tensors.push_back(made_up(input.tensor, input.limit.value_or(1), samples));
  }
  return tensors.size() == 1 ? tensors.front() : join_boundary({}, tensors);
}

// Sample values for the boundary after the layer. Integers may be indices, and 0 is valid in every
// table.
at::Tensor made_up_boundary(const LayerSpec& layer, int samples) {
  std::vector<at::Tensor> exact;
  for (const TensorSpec& spec : layer.exact_outputs) exact.push_back(made_up(spec, 1, samples));
  return join_boundary({wave(gradient_layout(layer, samples).sizes)}, exact);
}

// Whether the median of these is known to a hundredth: its error falls with the root of their
// number.
bool agree(const std::vector<double>& times_s) {
  const MedianAndSpread known = median_and_spread(times_s);
  return 1.5 * known.spread <=
         kAgreed * known.median * std::sqrt(static_cast<double>(times_s.size()));
}

}  // namespace

LayerBench::LayerBench(const Job& job,
                       const ModelSpec& model,
                       int layer,
                       const ComputeDevice& device)
    : model_(model),
      device_(device),
      watch_(device),
      throttle_(device.is_host() ? job.cpu_share : 0, job.threads),
      layer_(layer),
      chain_(job.config.model,
             model,
             layer,
             layer + 1,
             {.device = device.torch(),
              .products = product_type(device, job.config.train.precision)}) {
  chain_.initialize(job.config.train.seed);
  // In fp16 training the scale is hardly ever 1, which would save time and memory.
  constexpr double kGradientScale = 2;
  chain_.begin(kGradientScale);
}

LayerBench::Measured LayerBench::measure(int samples,
                                         const Effort& effort,
                                         const std::function<void()>& on_run) {
  LayerSample sample;
  sample.micro_batch = samples;
  std::vector<double> total_s;
  std::vector<double> forward_s;
  std::vector<double> backward_s;
  std::vector<double> input_s;
  std::vector<double> weight_s;
  std::optional<CacheEviction> others;
  if (device_.is_host()) others.emplace(bytes_of_others(model_, layer_, samples));
  sample.workspace_bytes = measure_workspace(samples);
  const at::Tensor input = make_input(samples);
  const at::Tensor targets = make_targets(samples);
  const double start_s = now_s();
  const auto is_known = [&](int runs) {
    const double took_s = now_s() - start_s;
    return runs >= kTimedMin &&
           (took_s >= effort.most_s || (runs >= kAgreedMin && agree(total_s)) ||
            (runs >= kEnoughRuns && took_s >= effort.enough_s));
  };
  int runs = 0;
  throttle_.begin();
  while (runs < kRunsMax && !is_known(runs)) {
    const int row = runs_in_a_row(total_s);
    for (int run = runs; run < runs + row; ++run) {
      const SavedBytes stored =
          run_once(input, targets, is_apart(run), others ? &*others : nullptr);
      sample.saved_bytes = stored.saved;
      sample.split = {0, 0, stored.queued};
      throttle_.end();
      if (on_run) on_run();
    }
    const std::vector<double> timestamps_s = watch_.read_s();
    for (std::span<const double> left = timestamps_s; !left.empty(); left = left.subspan(kMarks)) {
      const Times times = times_of(left.first(kMarks));
      forward_s.push_back(times.forward_s);
      input_s.push_back(times.input_s);
      total_s.push_back(times.forward_s + times.input_s);
      if (is_apart(runs++)) {
        weight_s.push_back(times.weight_s);
      } else {
        backward_s.push_back(times.input_s + times.weight_s);
      }
    }
  }
  const double run_s = (now_s() - start_s) / runs;
  const MedianAndSpread forward = median_and_spread(std::move(forward_s));
  const MedianAndSpread backward = median_and_spread(std::move(backward_s));
  sample.forward_s = forward.median;
  sample.forward_spread_s = forward.spread;
  sample.backward_s = backward.median;
  sample.backward_spread_s = backward.spread;
  sample.split->input_s = std::min(median(std::move(input_s)), sample.backward_s);
  sample.split->weight_s = median(std::move(weight_s));
  return {sample, run_s};
}

LayerBench::SavedBytes LayerBench::run_once(const at::Tensor& input,
                                            const at::Tensor& targets,
                                            bool apart,
                                            CacheEviction* others) {
  SavedBytes stored;
  if (others != nullptr) others->run();
  at::Tensor fresh = input.clone();  // after the eviction: in a step the previous layer has just
                                     // written it
  watch_.mark();
  at::Tensor output = forward(std::move(fresh), targets);
  watch_.mark();
  stored.saved = chain_.saved_bytes(kMicro.micro);
  if (others != nullptr) others->run();
  at::Tensor gradient = make_gradient(output);
  watch_.mark();
  backward_input(std::move(gradient));
  watch_.mark();
  stored.queued = chain_.saved_bytes(kMicro.micro);
  if (apart && others != nullptr) others->run();
  watch_.mark();
  chain_.backward_weight(kMicro.micro);
  watch_.mark();
  return stored;
}

LayerBench::Times LayerBench::times_of(std::span<const double> timestamps_s) {
  return {timestamps_s[1] - timestamps_s[0], timestamps_s[3] - timestamps_s[2],
          timestamps_s[5] - timestamps_s[4]};
}

int LayerBench::runs_in_a_row(const std::vector<double>& total_s) const {
  constexpr double kShort_s = 5e-3;  // for longer runs the launch overhead is negligible
  const bool are_short = !total_s.empty() && total_s.back() < kShort_s;
  return watch_.runs_asynchronously() && are_short ? kAgreedMin : 1;
}

std::int64_t LayerBench::measure_workspace(int samples) {
  AllocationMeter meter(device_.torch());
  at::Tensor output = forward(make_input(samples), make_targets(samples));
  const std::int64_t forward_bytes = meter.peak_bytes();
  const std::int64_t saved_bytes = chain_.saved_bytes(kMicro.micro);
  at::Tensor gradient = make_gradient(output);
  output.reset();
  backward_input(std::move(gradient));
  chain_.backward_weight(kMicro.micro);
  return std::max<std::int64_t>(0, std::max(forward_bytes, meter.peak_bytes()) - saved_bytes);
}

at::Tensor LayerBench::make_input(int samples) const {
  const auto there = [&](const at::Tensor& x) { return x.to(device_.torch()); };
  if (layer_ == 0) return there(made_up_inputs(model_.sample.inputs, samples));
  const auto& before = model_.layers[static_cast<std::size_t>(layer_) - 1];
  return there(made_up_boundary(before, samples));
}

at::Tensor LayerBench::make_gradient(const at::Tensor& output) const {
  if (chain_.ends_in_loss()) return {};
  const LayerSpec& layer = model_.layers[static_cast<std::size_t>(layer_)];
  const std::int64_t samples =
      output.numel() / c10::multiply_integers(activation_layout(layer, 1).sizes);
  return at::ones(gradient_layout(layer, samples).sizes, output.options().dtype(at::kFloat));
}

at::Tensor LayerBench::make_targets(int samples) const {
  return made_up(model_.sample.target, model_.sample.target_limit, samples).to(device_.torch());
}

at::Tensor LayerBench::forward(at::Tensor input, const at::Tensor& targets) {
  if (!chain_.ends_in_loss()) return chain_.forward(std::move(input), kMicro);
  (void)chain_.forward_loss_unread(std::move(input), targets, kMicro);
  return {};
}

void LayerBench::backward_input(at::Tensor gradient) {
  (void)(chain_.ends_in_loss() ? chain_.backward_loss_input(kMicro)
                               : chain_.backward_input(std::move(gradient), kMicro));
}

}  // namespace motley
