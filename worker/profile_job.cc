#include "worker/profile_job.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/system/system_memory.h"
#include "measure/codec_bench.h"
#include "measure/layer_bench.h"
#include "measure/optimizer_bench.h"
#include "measure/profile_warnings.h"
#include "measure/sizes_with_room.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/virtual_profile.h"
#include "plan/profile.h"
#include "rehearsal/virtual_compute.h"
#include "training/first_state.h"

namespace motley {
namespace {

// What the process of a stage holds beyond this one and its layers. Chosen from measured runs
// (docs/planning.md); what holds it was not found, one malloc arena for all threads takes as much.
constexpr std::int64_t kStageBytes = std::int64_t{64} << 20;

// Everything is timed in processor seconds. A device that shares its cores, or may use only a part
// of one, gives fewer of them per second: that rate is taken over the whole job, since a
// scheduler's period (100 ms under a CPU quota) is longer than most layers take.
void scale_times(DeviceProfile& device, double seconds_per_cpu_second) {
  device.optimizer_s_per_parameter *= seconds_per_cpu_second;
  device.message_s *= seconds_per_cpu_second;
  for (auto& [name, codec] : device.codecs) {
    codec.encode_s_per_float *= seconds_per_cpu_second;
    codec.decode_s_per_float *= seconds_per_cpu_second;
  }
  for (auto& [signature, samples] : device.layers) {
    for (LayerSample& sample : samples) sample.scale_times(seconds_per_cpu_second);
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

// Every codec that needs no parameter, the cheapest chains with zstd, and what this run is set to.
std::vector<std::string> codecs_to_measure(const Config& config) {
  std::vector<std::string> chains = {"fp16",         "bf16",         "int8",
                                     "int4",         "fp16|zstd(1)", "bf16|zstd(1)",
                                     "int8|zstd(1)", "int4|zstd(1)"};
  for (const std::string& chain : {config.compression.activations, config.compression.gradients}) {
    if (chain != "auto") chains.push_back(chain);  // which chooses among those above
  }
  return chains;
}

void measure_layers(const Job& job,
                    const ModelSpec& model,
                    const std::vector<int>& sizes,
                    DeviceProfile& device) {
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    const std::string& signature = model.layers[static_cast<std::size_t>(layer)].signature;
    if (device.layers.contains(signature)) continue;
    LayerBench bench(job, model, layer);
    std::vector<LayerSample>& measured = device.layers[signature];
    for (const int size : sizes) {
      release_freed_memory();  // what other sizes left is in pieces that do not serve this one
      if (!has_room(measured, size, available_memory_bytes())) break;
      measured.push_back(bench.measure(size));
    }
  }
}

// Measures again what was measured at the start. Layer 0 may be a look-up that is over at once;
// layer 1 computes.
std::string measure_drift(const Job& job,
                          const ModelSpec& model,
                          const std::vector<int>& sizes,
                          const DeviceProfile& device) {
  const int layer = std::min(1, static_cast<int>(model.layers.size()) - 1);
  const std::string& signature = model.layers[static_cast<std::size_t>(layer)].signature;
  LayerBench bench(job, model, layer);
  return drift_warning(device.layers.at(signature).front(), bench.measure(sizes.front()));
}

// Layers, optimizer and memory. Returns by what the processor seconds are to be multiplied.
double measure_device(const Job& job,
                      const ModelSpec& model,
                      const std::vector<int>& sizes,
                      DeviceProfile& device) {
  device.memory_bytes = available_memory_bytes();
  const double start_s = now_s();
  const double start_cpu_s = thread_cpu_s();
  measure_layers(job, model, sizes, device);
  device.optimizer_s_per_parameter = measure_optimizer(job.config.train, model.parameter_count());
  device.warnings = noise_warnings(device);
  const std::string drift = measure_drift(job, model, sizes, device);
  if (!drift.empty()) device.warnings.push_back(drift);
  return std::max(1.0, (now_s() - start_s) / (thread_cpu_s() - start_cpu_s));
}

}  // namespace

Result<void> run_profile_job(const Job& job, WorkerChannel& channel) {
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(job.config.model));
  MOTLEY_ASSIGN(const std::vector<int> sizes, read_sizes(job));
  // Each machine reads its own folder, which the launcher may not see.
  if (!job.virtual_speed) MOTLEY_TRY(check_initial_weights(job.config.model));
  channel.send({{"event", "ready"}});

  DeviceProfile device;
  double rate = 1;
  if (job.virtual_speed) {
    device = virtual_profile(model, *job.virtual_speed, virtual_job(job.config.train), sizes);
    device.memory_bytes = job.options.value("memory_bytes", std::int64_t{0});
  } else {
    rate = measure_device(job, model, sizes, device);
  }
  device.machine = job.options.value("machine", "");
  device.device = job.device;
  device.threads = job.threads;
  // A virtual device too has its values encoded and sent by this processor.
  TransportOptions transport;
  transport.kind = job.config.comm.transport;
  transport.secret = job.secret;
  transport.local_shortcut = job.local_shortcut;
  MOTLEY_ASSIGN(WireCost wire, measure_wire_cost(codecs_to_measure(job.config), transport));
  device.codecs = std::move(wire.codecs);
  device.message_s = wire.message_s;
  scale_times(device, rate);
  // At the end: by now the libraries have loaded what they use and keep their own buffers.
  release_freed_memory();
  device.baseline_bytes = resident_bytes() + kStageBytes;

  Profile profile;
  profile.devices.push_back(std::move(device));
  channel.send({{"event", "result"}, {"profile", profile_to_json(profile)}});
  return {};
}

}  // namespace motley
