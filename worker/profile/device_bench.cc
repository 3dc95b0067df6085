#include "worker/profile/device_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/system/system_memory.h"
#include "models/device/tensor_memory.h"
#include "profiling/codec_bench.h"
#include "profiling/layer_effort.h"
#include "profiling/layers/optimizer_bench.h"
#include "profiling/less_disturbed_sample.h"
#include "profiling/profile_warnings.h"
#include "profiling/sizes_that_fit.h"

namespace motley {
namespace {

// Shares of the whole time: codecs come first, then the optimizer and the layers; the rest follows
// them.
constexpr double kCodecShare = 0.1;
constexpr double kOptimizerShare = 0.05;
// The share of the layers' time that is reserved for measuring them again later.
constexpr double kLaterShare = 0.3;
constexpr double kAgainShare = kLaterShare * 0.8;
constexpr double kLayersShare = 0.8 - kAgainShare;
// The share for one size after its first ten runs; small, because there are many kinds and sizes.
constexpr double kEnoughShare = 1.0 / 80;
constexpr double kDrift_s = 0.2;

double total_s(const LayerSample& sample) {
  return sample.forward_s + sample.backward_s;
}

// The relative duration of a layer's kind. A layer without matrix products still moves its output.
double weight_of(const LayerSpec& layer) {
  constexpr double kOperationsPerByte = 25;
  return layer.forward_flops_per_sample +
         kOperationsPerByte * static_cast<double>(layer.boundary(1).bytes()) + 1;
}

std::string samples_words(int samples) {
  return fmt::format("{} sample{}", samples, samples == 1 ? "" : "s");
}

}  // namespace

DeviceBench::DeviceBench(const Job& job,
                         const ModelSpec& model,
                         const std::vector<int>& sizes,
                         MeasuringReport& report,
                         const ComputeDevice& device)
    : job_(job), model_(model), sizes_(sizes), report_(report), device_(device), watch_(device) {}

const std::string& DeviceBench::name(int layer) const {
  return model_.layers[static_cast<std::size_t>(layer)].name;
}

const std::string& DeviceBench::signature(int layer) const {
  return model_.layers[static_cast<std::size_t>(layer)].signature;
}

std::vector<int> DeviceBench::kinds() const {
  std::set<std::string> seen;
  std::vector<int> layers;
  for (int layer = 0; layer < static_cast<int>(model_.layers.size()); ++layer) {
    if (seen.insert(signature(layer)).second) layers.push_back(layer);
  }
  return layers;
}

bool DeviceBench::lacks_layers(const DeviceProfile& device) const {
  const auto is_missing = [&](int layer) { return !device.layers.contains(signature(layer)); };
  return device.optimizer_s_per_parameter <= 0 || std::ranges::any_of(kinds(), is_missing);
}

void DeviceBench::add_layers(DeviceProfile& device, double seconds) {
  const double start_s = now_s();
  const double start_watch_s = watch_.read_now_s();
  std::vector<int> missing = kinds();
  std::erase_if(missing, [&](int layer) { return device.layers.contains(signature(layer)); });
  double weight_left = 0;
  for (const int layer : missing) {
    weight_left += weight_of(model_.layers[static_cast<std::size_t>(layer)]);
  }
  const double weight_all = weight_left;
  if (device.optimizer_s_per_parameter <= 0) {
    report_.begin("the optimizer", kCodecShare + kOptimizerShare);
    device.optimizer_s_per_parameter = measure_optimizer(job_.config.train, model_, device_);
  }
  std::map<int, std::vector<LayerBench::Measured>> measured;  // by layer
  for (const int layer : missing) {
    const double weight = weight_of(model_.layers[static_cast<std::size_t>(layer)]);
    const double left_s = std::max(0.0, (1 - kLaterShare) * seconds - (now_s() - start_s));
    weight_left -= weight;
    report_.begin(name(layer),
                  kCodecShare + kOptimizerShare + kLayersShare * (1 - weight_left / weight_all));
    // A cheap layer still needs its minimum number of runs.
    const double least_s =
        kEnoughShare * job_.config.profile.seconds * static_cast<double>(sizes_.size());
    const double part_s = std::max(least_s, left_s * weight / (weight_left + weight));
    measured[layer] = measure_kind(layer, part_s);
  }
  // Measures again what was measured at the start. Layer 0 may be an embedding, which is too fast
  // to compare; the next one computes.
  const int checked = missing.empty() ? -1 : missing[std::min<std::size_t>(1, missing.size() - 1)];
  const LayerSample before = checked < 0 ? LayerSample{} : measured.at(checked).front().sample;
  measure_again(measured, start_s + seconds);
  for (const auto& [layer, sizes] : measured) {
    for (const LayerBench::Measured& one : sizes) {
      device.layers[signature(layer)].push_back(one.sample);
    }
  }
  device.warnings = noise_warnings(device);
  if (checked >= 0) {
    LayerBench bench(job_, model_, checked, device_);
    const LayerSample after = bench.measure(before.micro_batch, {kDrift_s, kDrift_s}).sample;
    const std::string drift = drift_warning(before, after);
    if (!drift.empty()) device.warnings.push_back(drift);
  }
  wall_s_ += now_s() - start_s;
  watch_s_ += watch_.read_now_s() - start_watch_s;
}

std::vector<LayerBench::Measured> DeviceBench::measure_kind(int layer, double seconds) {
  LayerBench bench(job_, model_, layer, device_);
  std::vector<LayerBench::Measured> measured;
  std::vector<LayerSample> samples;
  const double until_s = now_s() + seconds;
  std::size_t end = sizes_.size();
  for (std::size_t i = 0; i < end; ++i) {
    release_tensor_memory();  // memory freed for other sizes is fragmented
    if (!fits_memory(samples, sizes_[i], free_bytes())) break;
    const double left_s = std::max(0.0, until_s - now_s());
    const double enough_s = kEnoughShare * job_.config.profile.seconds;
    const double slice_s = std::max(enough_s, share_of_size(sizes_, i, end, left_s));
    report_.say(fmt::format("{} at {}", name(layer), samples_words(sizes_[i])));
    const auto on_run = [&] { report_.advance(1 - std::max(0.0, until_s - now_s()) / seconds); };
    const LayerBench::Measured one = bench.measure(sizes_[i], {slice_s, enough_s}, on_run);
    measured.push_back(one);
    samples.push_back(one.sample);
    if (i > 0) continue;
    std::vector<int> larger(sizes_.begin() + 1, sizes_.end());
    if (larger.empty()) break;
    // Two sizes define a line. An expensive layer does not need the second: its line passes through
    // the origin.
    const double dear_s = std::max(0.0, until_s - now_s());
    const double next_s = one.run_s * larger.front() / sizes_.front();
    if (LayerBench::kRunsMin * next_s > dear_s) break;
    end = 1 + affordable_sizes(larger, next_s, LayerBench::kRunsMin, dear_s);
  }
  return measured;
}

// Other load on the computer for some seconds affects everything measured meanwhile. Small sizes
// first, because the usual micro-batch is small.
void DeviceBench::measure_again(std::map<int, std::vector<LayerBench::Measured>>& measured,
                                double until_s) {
  report_.begin("layers once more", kCodecShare + kOptimizerShare + kLayersShare + kAgainShare);
  const double start_s = now_s();
  const double enough_s = kEnoughShare * job_.config.profile.seconds;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    for (auto& [layer, sizes] : measured) {
      if (i >= sizes.size()) continue;
      LayerBench::Measured& first = sizes[i];
      if (now_s() + LayerBench::kRunsMin * first.run_s > until_s) continue;
      release_tensor_memory();
      if (!fits_memory({first.sample}, sizes_[i], free_bytes())) continue;
      report_.say(fmt::format("{} at {}, again", name(layer), samples_words(sizes_[i])));
      report_.advance((now_s() - start_s) / (until_s - start_s));
      LayerBench bench(job_, model_, layer, device_);
      const auto on_run = [&] { report_.tick(); };
      const LayerBench::Measured again = bench.measure(sizes_[i], {enough_s, enough_s}, on_run);
      first.sample = less_disturbed_sample(first.sample, again.sample);
    }
  }
}

std::int64_t DeviceBench::free_bytes() const {
  const auto own = device_.memory();
  return own ? own->free_bytes : available_memory_bytes();
}

Result<void> DeviceBench::add_codecs(const std::vector<std::string>& chains,
                                     DeviceProfile& device) {
  std::vector<std::string> missing = chains;
  std::erase_if(missing, [&](const std::string& chain) { return device.codecs.contains(chain); });
  const bool has_all = device.codecs.contains("none") && device.shared_s_per_float > 0;
  if (missing.empty() && has_all) return {};
  report_.begin("codecs and messages", kCodecShare);
  // The values of a simulated device are also encoded and sent by this processor.
  TransportOptions transport;
  transport.kind = job_.config.comm.transport;
  transport.secret = job_.secret;
  transport.local_shortcut = job_.local_shortcut;
  MOTLEY_ASSIGN(WireCost wire, measure_wire_cost(missing, transport));
  device.codecs.merge(wire.codecs);
  device.message_s = wire.message_s;
  device.shared_s_per_float = wire.shared_s_per_float;
  return {};
}

DeviceBench::Sample DeviceBench::sample(const DeviceProfile& device, double seconds) {
  // Layer 0 may be an embedding, which is too fast to compare; layer 1 computes.
  std::vector<int> layers = kinds();
  std::ranges::rotate(layers, layers.begin() + (layers.size() > 1 ? 1 : 0));
  const auto kept = std::ranges::find_if(
      layers, [&](int layer) { return device.layers.contains(signature(layer)); });
  const LayerSample& before = device.layers.at(signature(*kept)).front();
  LayerBench bench(job_, model_, *kept, device_);
  // A few runs agree soon, but the share of a core that they get shows only over a longer time.
  const double start_s = now_s();
  const double start_watch_s = watch_.read_now_s();
  // The measurement nearest to the stored one counts: on a busy machine others deviate, and the
  // minimum of many would be below the stored median.
  const auto distance = [&](const LayerSample& sample) {
    return std::abs(std::log(total_s(sample) / total_s(before)));
  };
  LayerSample now = bench.measure(before.micro_batch, {seconds, seconds}).sample;
  while (now_s() - start_s < seconds) {
    const LayerSample again =
        bench.measure(before.micro_batch, {seconds - (now_s() - start_s), seconds}).sample;
    if (distance(again) < distance(now)) now = again;
  }
  Sample sample;
  sample.ratio = total_s(now) / total_s(before);
  sample.seconds_per_cpu_second =
      std::max(1.0, (now_s() - start_s) / (watch_.read_now_s() - start_watch_s));
  sample.noise = (now.forward_spread_s + now.backward_spread_s) / total_s(now) +
                 (before.forward_spread_s + before.backward_spread_s) / total_s(before);
  return sample;
}

double DeviceBench::seconds_per_cpu_second() const {
  return watch_s_ > 0 ? std::max(1.0, wall_s_ / watch_s_) : 1;
}

}  // namespace motley
