#include "measure/optimizer_bench.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/ATen.h>

#include "base/median.h"
#include "measure/cache_eviction.h"
#include "measure/stopwatch.h"
#include "models/device/device_copies.h"
#include "models/device/host_floats.h"
#include "models/kernels/in_parts.h"
#include "training/device_memory.h"
#include "training/host_memory.h"
#include "training/optimizer/optimizer.h"
#include "training/stage_state.h"

namespace motley {
namespace {

constexpr std::int64_t kParametersMax = std::int64_t{1} << 23;  // 128 MiB with AdamW
constexpr int kRuns = 7;

}  // namespace

double measure_optimizer(const TrainConfig& train,
                         std::int64_t parameters,
                         const ComputeDevice& device) {
  const std::int64_t count = std::clamp<std::int64_t>(parameters, 1, kParametersMax);
  const auto there = at::TensorOptions(device.torch()).dtype(at::kFloat);
  const at::Tensor values = at::full({count}, 0.5, there);
  at::Tensor gradients = at::zeros({count}, there);
  HeldParameter held;
  held.spec.name = "measured";
  held.spec.shape = {count};
  held.spec.decayed = true;
  std::optional<DeviceCopies> copies;
  std::unique_ptr<StateMemory> memory;
  if (device.is_host()) {
    memory = std::make_unique<HostMemory>(
        std::vector<HostMemory::Parameter>{{floats_of(values), floats_of(gradients)}},
        std::map<ChunkId, std::span<float>>{}, make_optimizer(train), kernels::in_parts);
  } else {
    copies.emplace(device);
    memory = std::make_unique<DeviceMemory>(
        std::vector<DeviceMemory::Parameter>{{values, gradients, {}}},
        std::map<ChunkId, GradientMirror*>{}, train, *copies);
  }
  StageState state({{ChunkId{0}, {}, {held}, {0}}}, std::move(memory), "");
  const auto optimizer = make_optimizer(train);
  std::optional<CacheEviction> others;
  if (device.is_host()) others.emplace(count * static_cast<std::int64_t>(sizeof(float)));
  Stopwatch watch(device);
  for (int run = -1; run < kRuns; ++run) {
    gradients.fill_(1e-3);
    if (others) others->run();
    watch.mark();
    [[maybe_unused]] const auto norms = state.layer_norms();
    state.update({1e-9, optimizer->corrections(run + 2)}, {});
    state.clear_gradients();
    watch.mark();
  }
  const std::vector<double> marks_s = watch.read_s();
  std::vector<double> times_s;  // without the first run, which touches memory for the first time
  for (std::size_t i = 2; i < marks_s.size(); i += 2) {
    times_s.push_back(marks_s[i + 1] - marks_s[i]);
  }
  return median(std::move(times_s)) / static_cast<double>(count);
}

}  // namespace motley
