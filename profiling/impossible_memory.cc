#include "profiling/impossible_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/spec/layer_memory.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

// Measurements differ from formulas by a small factor: padding, another attention kernel,
// temporaries of operations.
constexpr double kFactorMax = 16;
constexpr double kSlackBytes = 64e6;
constexpr double kBaselineBytesMax = 16e9;  // of a process without layers

// In fp32, the widest dtype of the values.
double bytes_by_formula(const ModelSpec& model, int layer, int samples) {
  constexpr double kFloatBytes = sizeof(float);
  const LayerSpec& spec = model.layers[static_cast<std::size_t>(layer)];
  const LayerMemory memory = layer_memory(model, layer);
  // The numbers that a package declares about itself may be 0.
  constexpr double kTensorsPerOutput = 16;
  const double of_sample = std::max(
      static_cast<double>(memory.saved_bytes + memory.queued_bytes + memory.workspace_bytes),
      kTensorsPerOutput * static_cast<double>(spec.boundary(1).bytes()));
  return samples * of_sample + kFloatBytes * static_cast<double>(spec.parameter_count());
}

double bytes_of(const LayerSample& sample) {
  return static_cast<double>(sample.saved_bytes) + static_cast<double>(sample.workspace_bytes) +
         (sample.split ? static_cast<double>(sample.split->queued_bytes) : 0);
}

}  // namespace

std::optional<std::string> impossible_memory(const DeviceProfile& stored, const ModelSpec& model) {
  if (static_cast<double>(stored.baseline_bytes) > kBaselineBytesMax) {
    return fmt::format("a process without layers takes {} in it",
                       bytes_text(static_cast<double>(stored.baseline_bytes)));
  }
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    const std::string& signature = model.layers[static_cast<std::size_t>(layer)].signature;
    const auto samples = stored.layers.find(signature);
    if (samples == stored.layers.end()) continue;
    for (const LayerSample& sample : samples->second) {
      const double most = kFactorMax * bytes_by_formula(model, layer, sample.micro_batch);
      if (bytes_of(sample) <= most + kSlackBytes) continue;
      return fmt::format("{} takes {} at {} sample{} in it", signature,
                         bytes_text(bytes_of(sample)), sample.micro_batch,
                         sample.micro_batch == 1 ? "" : "s");
    }
  }
  return std::nullopt;
}

}  // namespace motley
