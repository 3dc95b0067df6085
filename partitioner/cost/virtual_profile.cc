#include "partitioner/cost/virtual_profile.h"

#include <algorithm>

#include "base/check.h"
#include "models/spec/layer_memory.h"

namespace motley {
namespace {

constexpr double kFlopsPerByte = 32;

// A step reads and writes the value, reads and clears the gradient, and reads and writes the
// moments.
double optimizer_flops_per_parameter(const VirtualJob& job) {
  return kFlopsPerByte * kFp32Bytes * (4 + 2 * job.moments_per_parameter) +
         job.matrix_flops_per_parameter;
}

double step_flops(const ModelSpec& model, const VirtualJob& job) {
  double sample = 0;
  for (const LayerSpec& layer : model.layers) {
    sample += layer.forward_flops_per_sample + layer.input_part_flops_per_sample +
              layer.weight_part_flops_per_sample;
  }
  return sample * job.global_batch +
         optimizer_flops_per_parameter(job) * static_cast<double>(model.parameter_count());
}

double flops_per_s(const ModelSpec& model, const VirtualSpeed& speed, const VirtualJob& job) {
  if (speed.gflops > 0) return speed.gflops * 1e9;
  MOTLEY_CHECK(speed.tokens_per_s > 0, "a virtual device without a speed");
  const double step_tokens = static_cast<double>(model.tokens_per_sample) * job.global_batch;
  return step_flops(model, job) * speed.tokens_per_s / step_tokens;
}

LayerSample sample_of(
    const ModelSpec& model, int layer, int micro_batch, double rate, std::int64_t value_bytes) {
  const LayerMemory memory = layer_memory(model, layer, value_bytes);
  const LayerSpec& spec = model.layers[static_cast<std::size_t>(layer)];
  const auto seconds = [&](double flops_per_sample) {
    return flops_per_sample * micro_batch / rate;
  };
  const double input_s = seconds(spec.input_part_flops_per_sample);
  const double weight_s = seconds(spec.weight_part_flops_per_sample);
  LayerSample sample;
  sample.micro_batch = micro_batch;
  sample.forward_s = seconds(spec.forward_flops_per_sample);
  sample.backward_s = input_s + weight_s;
  sample.saved_bytes = memory.saved_bytes * micro_batch;
  sample.workspace_bytes =
      std::max(memory.workspace_bytes * micro_batch, memory.workspace_least_bytes) +
      memory.converted_bytes;
  sample.split = {input_s, weight_s, memory.queued_bytes * micro_batch};
  return sample;
}

}  // namespace

DeviceProfile virtual_profile(const ModelSpec& model,
                              const VirtualSpeed& speed,
                              const VirtualJob& job,
                              const std::vector<int>& sizes) {
  const double rate = flops_per_s(model, speed, job);
  DeviceProfile device;
  const std::int64_t value_bytes = job.rounds_intermediates ? job.product_bytes : kFp32Bytes;
  if (job.product_bytes < kFp32Bytes && model.package == nullptr) {
    device.rounded_bytes_per_parameter = job.product_bytes;
  }
  device.optimizer_s_per_parameter = optimizer_flops_per_parameter(job) / rate;
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    auto& samples = device.layers[model.layers[static_cast<std::size_t>(layer)].signature];
    if (!samples.empty()) continue;
    for (const int size : sizes)
      samples.push_back(sample_of(model, layer, size, rate, value_bytes));
  }
  return device;
}

}  // namespace motley
