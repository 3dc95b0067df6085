#include "measure/kept_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/spec/layer_memory.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

// Formulas and devices differ by a few times at the most: padding, another path of attention, what
// operations need beside their results.
constexpr double kFactorMax = 16;
constexpr double kSlackBytes = 64e6;
constexpr double kBaselineBytesMax = 16e9;  // of a process without any layer

// In fp32, where all that is wider than bf16 and fp16 is.
double bytes_by_formula(const ModelSpec& model, int layer, int samples) {
  constexpr double kFloatBytes = sizeof(float);
  const LayerSpec& spec = model.layers[static_cast<std::size_t>(layer)];
  const LayerMemory memory = layer_memory(model, layer);
  // What a package says of itself may be nothing.
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

std::optional<std::string> impossible_memory(const DeviceProfile& kept, const ModelSpec& model) {
  if (static_cast<double>(kept.baseline_bytes) > kBaselineBytesMax) {
    return fmt::format("a process without layers takes {} in it",
                       bytes_text(static_cast<double>(kept.baseline_bytes)));
  }
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    const std::string& signature = model.layers[static_cast<std::size_t>(layer)].signature;
    const auto samples = kept.layers.find(signature);
    if (samples == kept.layers.end()) continue;
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
