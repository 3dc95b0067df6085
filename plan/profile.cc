#include "plan/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "plan/limits.h"
#include "plan/plan.h"

namespace motley {
namespace {

constexpr const char* kProfileFormat = "motley.profile";
constexpr int kProfileVersion = 3;
constexpr std::size_t kLayerKindsMax = 65536;
constexpr std::size_t kSizesMax = 1024;
constexpr std::size_t kCodecsMax = 256;
constexpr std::size_t kCodecNameMax = 200;
constexpr std::size_t kSignatureMax = 1000;
constexpr double kBytesPerFloatMax = 64;
constexpr std::size_t kWarningsMax = 1024;
constexpr int kMicroBatchMax = 1 << 24;
// Far above any machine, and low enough that sums over layers and micro-batches cannot overflow.
constexpr double kMeasuredSecondsMax = 1e7;

Json sample_to_json(const LayerSample& sample) {
  Json json = {{"micro_batch", sample.micro_batch},
               {"forward_s", sample.forward_s},
               {"backward_s", sample.backward_s},
               {"forward_spread_s", sample.forward_spread_s},
               {"backward_spread_s", sample.backward_spread_s},
               {"saved_bytes", sample.saved_bytes},
               {"workspace_bytes", sample.workspace_bytes}};
  if (sample.split) {
    json["backward_input_s"] = sample.split->input_s;
    json["backward_weight_s"] = sample.split->weight_s;
    json["queued_bytes"] = sample.split->queued_bytes;
  }
  return json;
}

Result<SplitBackward> read_split(const JsonFields& fields, double backward_s) {
  SplitBackward split;
  MOTLEY_ASSIGN(split.input_s, fields.quantity("backward_input_s", kMeasuredSecondsMax));
  if (split.input_s > backward_s) {
    return fields.bad("backward_input_s", "it is larger than backward_s, of which it is a part");
  }
  MOTLEY_ASSIGN(split.weight_s, fields.quantity("backward_weight_s", kMeasuredSecondsMax));
  MOTLEY_ASSIGN(split.queued_bytes, fields.integer("queued_bytes", 0, kMemoryBytesMax));
  return split;
}

Result<LayerSample> read_sample(const JsonFields& fields) {
  LayerSample sample;
  MOTLEY_ASSIGN(const std::int64_t micro_batch, fields.integer("micro_batch", 1, kMicroBatchMax));
  sample.micro_batch = static_cast<int>(micro_batch);
  MOTLEY_ASSIGN(sample.forward_s, fields.quantity("forward_s", kMeasuredSecondsMax));
  MOTLEY_ASSIGN(sample.backward_s, fields.quantity("backward_s", kMeasuredSecondsMax));
  MOTLEY_ASSIGN(sample.forward_spread_s, fields.quantity("forward_spread_s", kMeasuredSecondsMax));
  MOTLEY_ASSIGN(sample.backward_spread_s,
                fields.quantity("backward_spread_s", kMeasuredSecondsMax));
  MOTLEY_ASSIGN(sample.saved_bytes, fields.integer("saved_bytes", 0, kMemoryBytesMax));
  MOTLEY_ASSIGN(sample.workspace_bytes, fields.integer("workspace_bytes", 0, kMemoryBytesMax));
  if (fields.has("backward_input_s") || fields.has("backward_weight_s") ||
      fields.has("queued_bytes")) {
    MOTLEY_ASSIGN(sample.split, read_split(fields, sample.backward_s));
  }
  return sample;
}

Result<std::vector<LayerSample>> read_samples(const JsonFields& fields) {
  MOTLEY_ASSIGN(const auto items, fields.items(1, kSizesMax));
  std::vector<LayerSample> samples;
  for (const JsonFields& item : items) {
    MOTLEY_ASSIGN(const LayerSample sample, read_sample(item));
    if (!samples.empty() && sample.micro_batch <= samples.back().micro_batch) {
      return item.bad("micro_batch", "the sizes do not ascend");
    }
    samples.push_back(sample);
  }
  return samples;
}

Json codecs_to_json(const std::map<std::string, CodecSample>& codecs) {
  Json json = Json::object();
  for (const auto& [name, codec] : codecs) {
    json[name] = {{"bytes_per_float", codec.bytes_per_float},
                  {"encode_s_per_float", codec.encode_s_per_float},
                  {"decode_s_per_float", codec.decode_s_per_float}};
  }
  return json;
}

Result<CodecSample> read_codec(const JsonFields& fields) {
  CodecSample codec;
  MOTLEY_ASSIGN(codec.bytes_per_float, fields.quantity("bytes_per_float", kBytesPerFloatMax));
  if (codec.bytes_per_float == 0) return fields.bad("bytes_per_float", "it is 0");
  MOTLEY_ASSIGN(codec.encode_s_per_float,
                fields.quantity("encode_s_per_float", kMeasuredSecondsMax));
  MOTLEY_ASSIGN(codec.decode_s_per_float,
                fields.quantity("decode_s_per_float", kMeasuredSecondsMax));
  return codec;
}

Result<std::map<std::string, CodecSample>> read_codecs(const JsonFields& fields) {
  MOTLEY_ASSIGN(const auto members, fields.members("codecs", kCodecsMax));
  std::map<std::string, CodecSample> codecs;
  for (const auto& [name, codec] : members) {
    if (name.empty() || name.size() > kCodecNameMax) return codec.bad("an invalid codec name");
    MOTLEY_ASSIGN(codecs[name], read_codec(codec));
  }
  if (!codecs.contains("none")) return fields.bad("codecs", "codec 'none' is missing");
  return codecs;
}

Json device_to_json(const DeviceProfile& device) {
  Json layers = Json::object();
  for (const auto& [signature, samples] : device.layers) {
    Json list = Json::array();
    for (const LayerSample& sample : samples) list.push_back(sample_to_json(sample));
    layers[signature] = std::move(list);
  }
  Json json = {{"machine", device.machine},
               {"device", device.device},
               {"threads", device.threads},
               {"cores", device.cores},
               {"memory_bytes", device.memory_bytes},
               {"baseline_bytes", device.baseline_bytes},
               {"optimizer_s_per_parameter", device.optimizer_s_per_parameter},
               {"codecs", codecs_to_json(device.codecs)},
               {"message_s", device.message_s},
               {"alone_factor", device.single_device_factor},
               {"layers", std::move(layers)},
               {"warnings", device.warnings}};
  if (device.shared_s_per_float > 0) json["shared_s_per_float"] = device.shared_s_per_float;
  if (!device.computer.empty()) json["computer"] = device.computer;
  if (device.precision != "fp32") json["precision"] = device.precision;
  if (device.compute_dtype != device.precision) json["numbers"] = device.compute_dtype;
  if (device.rounded_bytes_per_parameter > 0) {
    json["rounded_bytes_per_parameter"] = device.rounded_bytes_per_parameter;
  }
  return json;
}

Result<DeviceProfile> read_device(const JsonFields& fields) {
  DeviceProfile device;
  MOTLEY_ASSIGN(device.machine, fields.word("machine", kMachineNameOthers));
  MOTLEY_ASSIGN(device.device, fields.word("device", kDeviceNameOthers));
  if (fields.has("computer")) {
    MOTLEY_ASSIGN(device.computer, fields.word("computer", "-"));
  }
  MOTLEY_ASSIGN(const std::int64_t threads, fields.integer("threads", 1, kThreadsMax));
  device.threads = static_cast<int>(threads);
  if (fields.has("cores")) {
    MOTLEY_ASSIGN(device.cores, fields.quantity("cores", kThreadsMax));
  }
  MOTLEY_ASSIGN(device.memory_bytes, fields.integer("memory_bytes", 0, kMemoryBytesMax));
  MOTLEY_ASSIGN(device.baseline_bytes, fields.integer("baseline_bytes", 0, kMemoryBytesMax));
  if (fields.has("precision")) {
    MOTLEY_ASSIGN(device.precision, fields.one_of("precision", kProductDtypes));
  }
  device.compute_dtype = device.precision;
  if (fields.has("numbers")) {
    MOTLEY_ASSIGN(device.compute_dtype, fields.one_of("numbers", kProductDtypes));
  }
  if (fields.has("rounded_bytes_per_parameter")) {
    MOTLEY_ASSIGN(const std::int64_t bytes,
                  fields.integer("rounded_bytes_per_parameter", 0, sizeof(float)));
    device.rounded_bytes_per_parameter = static_cast<int>(bytes);
  }
  MOTLEY_ASSIGN(device.optimizer_s_per_parameter,
                fields.quantity("optimizer_s_per_parameter", kMeasuredSecondsMax));
  MOTLEY_ASSIGN(device.codecs, read_codecs(fields));
  MOTLEY_ASSIGN(device.message_s, fields.quantity("message_s", kMeasuredSecondsMax));
  if (fields.has("shared_s_per_float")) {
    MOTLEY_ASSIGN(device.shared_s_per_float,
                  fields.quantity("shared_s_per_float", kMeasuredSecondsMax));
  }
  if (fields.has("alone_factor")) {
    MOTLEY_ASSIGN(device.single_device_factor, fields.quantity("alone_factor", 1));
    if (device.single_device_factor == 0) return fields.bad("alone_factor", "it is 0");
  }
  MOTLEY_ASSIGN(device.warnings, fields.texts("warnings", kWarningsMax));
  MOTLEY_ASSIGN(const auto layers, fields.members("layers", kLayerKindsMax));
  for (const auto& [signature, samples] : layers) {
    if (signature.size() > kSignatureMax) return samples.bad("its signature is too long");
    MOTLEY_ASSIGN(device.layers[signature], read_samples(samples));
  }
  return device;
}

}  // namespace

const DeviceProfile* Profile::find(const std::string& machine, const std::string& device) const {
  const auto it = std::find_if(devices.begin(), devices.end(), [&](const DeviceProfile& d) {
    return d.machine == machine && d.device == device;
  });
  return it == devices.end() ? nullptr : &*it;
}

std::vector<std::string> warnings_of(const Profile& profile) {
  std::vector<std::string> warnings;
  for (const DeviceProfile& device : profile.devices) {
    for (const std::string& warning : device.warnings) {
      warnings.push_back(fmt::format("{} {}: {}", device.machine, device.device, warning));
    }
  }
  return warnings;
}

Json profile_to_json(const Profile& profile) {
  Json devices = Json::array();
  for (const DeviceProfile& device : profile.devices) devices.push_back(device_to_json(device));
  return {
      {"format", kProfileFormat}, {"version", kProfileVersion}, {"devices", std::move(devices)}};
}

Result<Profile> parse_profile(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  return profile_from_json(json, JsonSource(source, text));
}

Result<Profile> profile_from_json(const Json& json, const JsonSource& source) {
  const JsonFields fields(json, source, ErrorCode::kCorrupt);
  MOTLEY_TRY(fields.header(kProfileFormat, kProfileVersion));
  MOTLEY_ASSIGN(const auto items, fields.items("devices", 0, kDevicesMax));
  Profile profile;
  for (const JsonFields& item : items) {
    MOTLEY_ASSIGN(DeviceProfile device, read_device(item));
    if (profile.find(device.machine, device.device) != nullptr) {
      return item.bad(fmt::format("duplicate {}/{}", device.machine, device.device));
    }
    profile.devices.push_back(std::move(device));
  }
  return profile;
}

void LayerSample::scale_times(double factor) {
  for (double* time_s : {&forward_s, &backward_s, &forward_spread_s, &backward_spread_s}) {
    *time_s *= factor;
  }
  if (!split) return;
  split->input_s *= factor;
  split->weight_s *= factor;
}

void DeviceProfile::scale_times(double factor) {
  optimizer_s_per_parameter *= factor;
  message_s *= factor;
  shared_s_per_float *= factor;
  for (auto& [name, codec] : codecs) {
    codec.encode_s_per_float *= factor;
    codec.decode_s_per_float *= factor;
  }
  for (auto& [signature, samples] : layers) {
    for (LayerSample& sample : samples) sample.scale_times(factor);
  }
}

LayerSample interpolate(const std::vector<LayerSample>& samples, int micro_batch) {
  MOTLEY_CHECK(!samples.empty(), "no samples for micro-batch {}", micro_batch);
  const auto at_or_above =
      std::lower_bound(samples.begin(), samples.end(), micro_batch,
                       [](const LayerSample& s, int size) { return s.micro_batch < size; });
  if (at_or_above != samples.end() && at_or_above->micro_batch == micro_batch) return *at_or_above;
  // With one sample, costs are proportional to the size, as on a line from (0, 0).
  LayerSample origin;
  if (samples.front().split) origin.split.emplace();
  const bool alone = samples.size() == 1;
  const auto upper = std::clamp(at_or_above, samples.begin() + (alone ? 0 : 1), samples.end() - 1);
  const LayerSample& a = alone ? origin : *(upper - 1);
  const LayerSample& b = *upper;
  const double share =
      static_cast<double>(micro_batch - a.micro_batch) / (b.micro_batch - a.micro_batch);
  // A steep line extrapolated to small sizes may fall below zero.
  const auto seconds = [&](double from_s, double to_s) {
    return std::max(0.0, from_s + share * (to_s - from_s));
  };
  const auto bytes = [&](std::int64_t from, std::int64_t to) {
    const double value = static_cast<double>(from) + share * static_cast<double>(to - from);
    return static_cast<std::int64_t>(std::clamp(std::ceil(value), 0.0, double{kMemoryBytesMax}));
  };
  LayerSample sample{.micro_batch = micro_batch,
                     .forward_s = seconds(a.forward_s, b.forward_s),
                     .backward_s = seconds(a.backward_s, b.backward_s),
                     .forward_spread_s = seconds(a.forward_spread_s, b.forward_spread_s),
                     .backward_spread_s = seconds(a.backward_spread_s, b.backward_spread_s),
                     .saved_bytes = bytes(a.saved_bytes, b.saved_bytes),
                     .workspace_bytes = bytes(a.workspace_bytes, b.workspace_bytes),
                     .split = {}};
  if (a.split && b.split) {
    const double input_s = seconds(a.split->input_s, b.split->input_s);
    sample.split = {std::min(input_s, sample.backward_s),
                    seconds(a.split->weight_s, b.split->weight_s),
                    bytes(a.split->queued_bytes, b.split->queued_bytes)};
  }
  return sample;
}

}  // namespace motley
