#include "profiling/layers/optimizer_bench.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/median.h"
#include "models/device/device_copies.h"
#include "models/device/host_floats.h"
#include "models/kernels/in_parts.h"
#include "profiling/cache_eviction.h"
#include "profiling/layers/stopwatch.h"
#include "training/memory/device_memory.h"
#include "training/memory/host_memory.h"
#include "training/optimizer/muon.h"
#include "training/optimizer/optimizer.h"
#include "training/optimizer/parameter_rules.h"
#include "training/stage_state.h"

namespace motley {
namespace {

constexpr std::int64_t kParametersMax = std::int64_t{1} << 23;  // 128 MiB with AdamW
constexpr std::int64_t kParameters = 16;
constexpr int kRuns = 7;
// Large enough for the rate of large ones.
constexpr MatrixShape kMatrixOfProcessor = {256, 1024};
constexpr MatrixShape kMatrixOfDevice = {1024, 4096};

struct MeasuredParameter {
  std::int64_t count = 0;
  std::optional<MatrixShape> matrix = {};
};

// Seconds of a step on parameters of these sizes.
double measure_step(const TrainConfig& train,
                    const std::vector<MeasuredParameter>& parameters,
                    const ComputeDevice& device) {
  std::int64_t count = 0;
  for (const MeasuredParameter& parameter : parameters) count += parameter.count;
  const auto there = at::TensorOptions(device.torch()).dtype(at::kFloat);
  const at::Tensor values = at::full({count}, 0.5, there);
  at::Tensor gradients = at::zeros({count}, there);
  std::vector<HeldParameter> held;
  std::vector<HostMemory::Parameter> on_host;
  std::vector<DeviceMemory::Parameter> on_device;
  std::int64_t first = 0;
  for (const auto& [length, matrix] : parameters) {
    HeldParameter& parameter = held.emplace_back();
    parameter.spec.name = "measured" + std::to_string(held.size() - 1);
    parameter.spec.shape = {length};
    parameter.spec.decayed = true;
    const at::Tensor its_values = values.narrow(0, first, length);
    const at::Tensor its_gradients = gradients.narrow(0, first, length);
    if (device.is_host()) {
      on_host.push_back({floats_of(its_values), floats_of(its_gradients), matrix});
    } else {
      on_device.push_back({its_values, its_gradients, {}, false, matrix});
    }
    first += length;
  }
  std::optional<DeviceCopies> copies;
  std::unique_ptr<StateMemory> memory;
  if (device.is_host()) {
    memory = std::make_unique<HostMemory>(std::move(on_host), std::map<ChunkId, std::span<float>>{},
                                          make_optimizer(train), kernels::in_parts);
  } else {
    copies.emplace(device);
    memory =
        std::make_unique<DeviceMemory>(std::move(on_device), std::map<ChunkId, GradientMirror*>{},
                                       train, *copies, kernels::in_parts);
  }
  StageState state({{ChunkId{0}, {}, std::move(held), {0}}}, std::move(memory), "",
                   /*micro_batches=*/1, train.ema);
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
  const std::vector<double> timestamps_s = watch.read_s();
  std::vector<double> times_s;  // without the first run, which touches memory for the first time
  for (std::size_t i = 2; i < timestamps_s.size(); i += 2) {
    times_s.push_back(timestamps_s[i + 1] - timestamps_s[i]);
  }
  return median(std::move(times_s));
}

}  // namespace

double measure_optimizer(const TrainConfig& train,
                         std::int64_t parameters,
                         const ComputeDevice& device,
                         double matrix_flops) {
  const std::int64_t count = std::clamp<std::int64_t>(parameters, 1, kParametersMax);
  // Several parameters: compute threads divide a step's norms by parameter.
  std::vector<MeasuredParameter> flat;
  for (std::int64_t p = 0; p < kParameters; ++p) {
    const std::int64_t length = count * (p + 1) / kParameters - count * p / kParameters;
    if (length > 0) flat.push_back({length});
  }
  const double flat_s = measure_step(train, flat, device) / static_cast<double>(count);
  if (matrix_flops == 0) return flat_s;
  const MatrixShape shape = device.is_host() ? kMatrixOfProcessor : kMatrixOfDevice;
  const double matrix_s = measure_step(train, {{shape.rows * shape.columns, shape}}, device);
  return flat_s + matrix_s / orthogonal_flops(shape) * matrix_flops;
}

double measure_optimizer(const TrainConfig& train,
                         const ModelSpec& model,
                         const ComputeDevice& device) {
  return measure_optimizer(train, model.parameter_count(), device,
                           matrix_flops_per_parameter(train, model));
}

}  // namespace motley
