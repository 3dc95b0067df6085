#include "training/profile_job.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>

#include "base/clock.h"
#include "base/system_memory.h"
#include "models/chain.h"
#include "partitioner/profile.h"
#include "training/allocation_meter.h"
#include "training/codec_bench.h"
#include "training/optimizer.h"
#include "training/timing.h"

namespace motley {
namespace {

// Layers are timed in processor seconds of the computing thread, whose medians are steady. A device
// that shares its cores, or may use only a part of one, gives fewer of them per second: that rate
// is taken over the whole job, since a scheduler's period (100 ms under a CPU quota) is longer than
// most layers take.
constexpr double kMeasure_s = 0.1;  // per layer, size and direction, after the warm-up
constexpr int kRunsMin = 3;
constexpr int kRunsMax = 200;

// One layer alone, fed with plausible values.
class LayerBench {
 public:
  LayerBench(const Job& job, const ModelSpec& model, int layer)
      : model_(model), layer_(layer), chain_(job.config.model, model, layer, layer + 1) {
    chain_.initialize(job.config.train.seed);
  }

  LayerSample measure(int samples) {
    const MicroContext micro{1, 1, 0, true};
    LayerSample sample;
    sample.micro_batch = samples;
    std::vector<double> forward_s;
    std::vector<double> backward_s;
    const double until_s = now_s() + 2 * kMeasure_s;
    for (int run = -1; run < kRunsMin || (now_s() < until_s && run < kRunsMax); ++run) {
      at::Tensor input = make_input(samples);
      const at::Tensor targets = make_targets(samples);
      const double start_s = thread_cpu_s();
      at::Tensor output = forward(std::move(input), targets, micro);
      const double middle_s = thread_cpu_s();
      sample.saved_bytes = chain_.saved_bytes(micro.micro);
      at::Tensor gradient = chain_.ends_in_loss() ? at::Tensor() : at::ones_like(output);
      const double backward_start_s = thread_cpu_s();
      backward(std::move(gradient), micro);
      const double end_s = thread_cpu_s();
      if (run < 0) continue;  // the first run touches memory for the first time
      forward_s.push_back(middle_s - start_s);
      backward_s.push_back(end_s - backward_start_s);
    }
    sample.workspace_bytes = measure_workspace(samples, sample.saved_bytes);
    const Timing forward_timing = summarise(std::move(forward_s));
    const Timing backward_timing = summarise(std::move(backward_s));
    sample.forward_s = forward_timing.median_s;
    sample.forward_spread_s = forward_timing.spread_s;
    sample.backward_s = backward_timing.median_s;
    sample.backward_spread_s = backward_timing.spread_s;
    return sample;
  }

  [[nodiscard]] LayerChain& chain() { return chain_; }

 private:
  // The peak of its tensors beyond what stays kept, in a run that is not timed.
  std::int64_t measure_workspace(int samples, std::int64_t saved_bytes) {
    const MicroContext micro{1, 1, 0, true};
    AllocationMeter meter;
    at::Tensor output = forward(make_input(samples), make_targets(samples), micro);
    const std::int64_t forward_bytes = meter.peak_bytes();
    at::Tensor gradient = chain_.ends_in_loss() ? at::Tensor() : at::ones_like(output);
    output.reset();
    backward(std::move(gradient), micro);
    return std::max<std::int64_t>(0, std::max(forward_bytes, meter.peak_bytes()) - saved_bytes);
  }

  [[nodiscard]] at::Tensor make_input(int samples) const {
    const std::int64_t tokens = model_.tokens_per_sample;
    if (layer_ == 0) return make_targets(samples);
    const auto& before = model_.layers[static_cast<std::size_t>(layer_) - 1];
    at::Tensor x = at::empty({samples, tokens, before.output_floats_per_sample / tokens});
    float* values = x.data_ptr<float>();
    for (std::int64_t i = 0; i < x.numel(); ++i) values[i] = std::sin(static_cast<float>(i));
    return x;
  }

  [[nodiscard]] at::Tensor make_targets(int samples) const {
    at::Tensor tokens = at::empty({samples, model_.tokens_per_sample}, at::kLong);
    auto* values = tokens.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < tokens.numel(); ++i) values[i] = (i * 7919) % model_.vocab;
    return tokens;
  }

  at::Tensor forward(at::Tensor input, const at::Tensor& targets, const MicroContext& micro) {
    if (!chain_.ends_in_loss()) return chain_.forward(std::move(input), micro);
    (void)chain_.forward_loss(std::move(input), targets, micro);
    return {};
  }

  void backward(at::Tensor gradient, const MicroContext& micro) {
    (void)(chain_.ends_in_loss() ? chain_.backward_loss(micro)
                                 : chain_.backward(std::move(gradient), micro));
  }

  const ModelSpec& model_;
  int layer_;
  LayerChain chain_;
};

double measure_optimizer(const Job& job, LayerChain& chain) {
  const auto optimizer = make_optimizer(job.config.train);
  std::vector<std::vector<float>> moments(optimizer->moment_names().size(),
                                          std::vector<float>(chain.values().size()));
  std::vector<double> times_s;
  for (int run = -1; run < 5; ++run) {
    const std::vector<std::span<float>> spans(moments.begin(), moments.end());
    const double start_s = thread_cpu_s();
    optimizer->update(chain.values(), chain.gradients(), spans, {1e-9, 1.0F, run + 2, true});
    if (run >= 0) times_s.push_back(thread_cpu_s() - start_s);
  }
  return median(times_s) / static_cast<double>(chain.values().size());
}

// From processor seconds to seconds.
void scale_times(DeviceProfile& device, double seconds_per_cpu_second) {
  device.optimizer_s_per_parameter *= seconds_per_cpu_second;
  for (auto& [signature, samples] : device.layers) {
    for (LayerSample& sample : samples) {
      for (double* time_s : {&sample.forward_s, &sample.backward_s, &sample.forward_spread_s,
                             &sample.backward_spread_s}) {
        *time_s *= seconds_per_cpu_second;
      }
    }
  }
}

Result<std::vector<int>> read_sizes(const Job& job) {
  std::vector<int> sizes;
  const Json list = job.options.value("sizes", Json::array());
  for (const Json& size : list) {
    if (size.is_number_integer() && size.get<int>() > 0) sizes.push_back(size.get<int>());
  }
  if (sizes.empty()) return Error{ErrorCode::kInternal, "a profile job without sizes", "", ""};
  std::ranges::sort(sizes);
  return sizes;
}

}  // namespace

Result<void> run_profile_job(const Job& job, WorkerChannel& channel) {
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(job.config.model));
  MOTLEY_ASSIGN(const std::vector<int> sizes, read_sizes(job));
  channel.send({{"event", "ready"}});

  DeviceProfile device;
  device.machine = job.options.value("machine", "");
  device.device = job.device;
  device.threads = job.threads;
  device.memory_bytes = available_memory_bytes();
  device.baseline_bytes = resident_bytes();
  std::int64_t largest = 0;
  const double start_s = now_s();
  const double start_cpu_s = thread_cpu_s();
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    const LayerSpec& spec = model.layers[static_cast<std::size_t>(layer)];
    if (device.layers.contains(spec.signature)) continue;
    LayerBench bench(job, model, layer);
    for (const int size : sizes) device.layers[spec.signature].push_back(bench.measure(size));
    if (spec.parameter_count() > largest) {
      largest = spec.parameter_count();
      device.optimizer_s_per_parameter = measure_optimizer(job, bench.chain());
    }
  }
  scale_times(device, std::max(1.0, (now_s() - start_s) / (thread_cpu_s() - start_cpu_s)));
  MOTLEY_ASSIGN(WireCost wire, measure_wire_cost({"fp16", "bf16", "fp16|zstd(1)", "bf16|zstd(1)",
                                                  job.config.compression.activations},
                                                 job.config.comm.transport));
  device.codecs = std::move(wire.codecs);
  device.message_s = wire.message_s;
  Profile profile;
  profile.devices.push_back(std::move(device));
  channel.send({{"event", "result"}, {"profile", profile_to_json(profile)}});
  return {};
}

}  // namespace motley
