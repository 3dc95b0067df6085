#include "partitioner/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/json.h"
#include "partitioner/json_fields.h"

namespace motley {
namespace {

constexpr const char* kFormat = "motley.profile";
constexpr int kVersion = 2;
constexpr std::size_t kDevicesMax = 4096;
constexpr std::size_t kLayerKindsMax = 65536;
constexpr std::size_t kSamplesMax = 1024;
constexpr std::size_t kCodecsMax = 256;
constexpr std::size_t kCodecNameMax = 200;
constexpr double kBytesPerFloatMax = 64;
constexpr std::size_t kWarningsMax = 1024;
constexpr std::size_t kWarningMax = 1000;
constexpr int kMicroBatchMax = 1 << 24;
constexpr int kThreadsMax = 4096;
// Far above any machine, and low enough that sums over layers and micro-batches cannot overflow.
constexpr std::int64_t kBytesMax = std::int64_t{1} << 48;
constexpr double kSecondsMax = 1e7;

Result<double> read_seconds(const JsonFields& fields, const char* key) {
  MOTLEY_ASSIGN(const double seconds, fields.quantity(key));
  if (seconds > kSecondsMax) return fields.bad(fmt::format("key '{}' is {} s", key, seconds));
  return seconds;
}

Json sample_to_json(const LayerSample& sample) {
  return {{"micro_batch", sample.micro_batch},
          {"forward_s", sample.forward_s},
          {"backward_s", sample.backward_s},
          {"forward_spread_s", sample.forward_spread_s},
          {"backward_spread_s", sample.backward_spread_s},
          {"saved_bytes", sample.saved_bytes},
          {"workspace_bytes", sample.workspace_bytes}};
}

Result<LayerSample> sample_from_json(const Json& json, const std::string& place) {
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  LayerSample sample;
  MOTLEY_ASSIGN(const std::int64_t micro_batch, fields.integer("micro_batch", 1, kMicroBatchMax));
  sample.micro_batch = static_cast<int>(micro_batch);
  MOTLEY_ASSIGN(sample.forward_s, read_seconds(fields, "forward_s"));
  MOTLEY_ASSIGN(sample.backward_s, read_seconds(fields, "backward_s"));
  MOTLEY_ASSIGN(sample.forward_spread_s, read_seconds(fields, "forward_spread_s"));
  MOTLEY_ASSIGN(sample.backward_spread_s, read_seconds(fields, "backward_spread_s"));
  MOTLEY_ASSIGN(sample.saved_bytes, fields.integer("saved_bytes", 0, kBytesMax));
  MOTLEY_ASSIGN(sample.workspace_bytes, fields.integer("workspace_bytes", 0, kBytesMax));
  return sample;
}

Result<std::vector<LayerSample>> samples_from_json(const Json& json, const std::string& place) {
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  if (!json.is_array() || json.empty() || json.size() > kSamplesMax) {
    return fields.bad(fmt::format("an array of 1 to {} samples was expected", kSamplesMax));
  }
  std::vector<LayerSample> samples;
  for (const Json& item : json) {
    MOTLEY_ASSIGN(const LayerSample sample,
                  sample_from_json(item, fmt::format("{}[{}]", place, samples.size())));
    if (!samples.empty() && sample.micro_batch <= samples.back().micro_batch) {
      return fields.bad("the micro_batch sizes do not ascend");
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

Result<CodecSample> codec_from_json(const Json& json, const std::string& place) {
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  CodecSample codec;
  MOTLEY_ASSIGN(codec.bytes_per_float, fields.quantity("bytes_per_float"));
  if (codec.bytes_per_float == 0 || codec.bytes_per_float > kBytesPerFloatMax) {
    return fields.bad(fmt::format("key 'bytes_per_float' is {}", codec.bytes_per_float));
  }
  MOTLEY_ASSIGN(codec.encode_s_per_float, read_seconds(fields, "encode_s_per_float"));
  MOTLEY_ASSIGN(codec.decode_s_per_float, read_seconds(fields, "decode_s_per_float"));
  return codec;
}

Result<std::map<std::string, CodecSample>> codecs_from_json(const Json& json,
                                                            const std::string& place) {
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  if (json.size() > kCodecsMax) return fields.bad("too many codecs");
  if (!json.contains("none")) return fields.bad("codec 'none' is missing");
  std::map<std::string, CodecSample> codecs;
  for (const auto& [name, codec] : json.items()) {
    if (name.empty() || name.size() > kCodecNameMax) return fields.bad("an unusable codec name");
    MOTLEY_ASSIGN(codecs[name], codec_from_json(codec, fmt::format("{}['{}']", place, name)));
  }
  return codecs;
}

Result<std::vector<std::string>> warnings_from_json(const Json& json, const JsonFields& device) {
  std::vector<std::string> warnings;
  for (const Json& item : json) {
    if (!item.is_string() || item.get_ref<const std::string&>().size() > kWarningMax) {
      return device.bad(fmt::format("a warning is not a text of at most {} bytes", kWarningMax));
    }
    warnings.push_back(item.get<std::string>());
  }
  return warnings;
}

Json device_to_json(const DeviceProfile& device) {
  Json layers = Json::object();
  for (const auto& [signature, samples] : device.layers) {
    Json list = Json::array();
    for (const LayerSample& sample : samples) list.push_back(sample_to_json(sample));
    layers[signature] = std::move(list);
  }
  return {{"machine", device.machine},
          {"device", device.device},
          {"threads", device.threads},
          {"memory_bytes", device.memory_bytes},
          {"baseline_bytes", device.baseline_bytes},
          {"optimizer_s_per_parameter", device.optimizer_s_per_parameter},
          {"codecs", codecs_to_json(device.codecs)},
          {"message_s", device.message_s},
          {"layers", std::move(layers)},
          {"warnings", device.warnings}};
}

Result<DeviceProfile> device_from_json(const Json& json, const std::string& place) {
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  DeviceProfile device;
  MOTLEY_ASSIGN(device.machine, fields.word("machine", kMachineNameOthers));
  MOTLEY_ASSIGN(device.device, fields.word("device", kDeviceNameOthers));
  MOTLEY_ASSIGN(const std::int64_t threads, fields.integer("threads", 1, kThreadsMax));
  device.threads = static_cast<int>(threads);
  MOTLEY_ASSIGN(device.memory_bytes, fields.integer("memory_bytes", 0, kBytesMax));
  MOTLEY_ASSIGN(device.baseline_bytes, fields.integer("baseline_bytes", 0, kBytesMax));
  MOTLEY_ASSIGN(device.optimizer_s_per_parameter,
                read_seconds(fields, "optimizer_s_per_parameter"));
  MOTLEY_ASSIGN(const Json* codecs, fields.object("codecs"));
  MOTLEY_ASSIGN(device.codecs, codecs_from_json(*codecs, place + ".codecs"));
  MOTLEY_ASSIGN(device.message_s, read_seconds(fields, "message_s"));
  MOTLEY_ASSIGN(const Json* warnings, fields.array("warnings", kWarningsMax));
  MOTLEY_ASSIGN(device.warnings, warnings_from_json(*warnings, fields));
  MOTLEY_ASSIGN(const Json* layers, fields.object("layers"));
  if (layers->size() > kLayerKindsMax) return fields.bad("too many layer kinds");
  for (const auto& [signature, list] : layers->items()) {
    MOTLEY_ASSIGN(device.layers[signature],
                  samples_from_json(list, fmt::format("{}.layers['{}']", place, signature)));
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

Json profile_to_json(const Profile& profile) {
  Json devices = Json::array();
  for (const DeviceProfile& device : profile.devices) devices.push_back(device_to_json(device));
  return {{"format", kFormat}, {"version", kVersion}, {"devices", std::move(devices)}};
}

Result<Profile> profile_from_json(const Json& json, const std::string& source) {
  const JsonFields fields(json, source, ErrorCode::kCorrupt);
  MOTLEY_TRY(fields.header(kFormat, kVersion));
  MOTLEY_ASSIGN(const Json* devices, fields.array("devices", kDevicesMax));
  Profile profile;
  for (const Json& item : *devices) {
    const std::string place = fmt::format("{}: devices[{}]", source, profile.devices.size());
    MOTLEY_ASSIGN(DeviceProfile device, device_from_json(item, place));
    if (profile.find(device.machine, device.device) != nullptr) {
      return fields.bad(fmt::format("{}/{} stands in it twice", device.machine, device.device));
    }
    profile.devices.push_back(std::move(device));
  }
  return profile;
}

LayerSample interpolate(const std::vector<LayerSample>& samples, int micro_batch) {
  MOTLEY_CHECK(!samples.empty(), "no samples for micro-batch {}", micro_batch);
  const auto at_or_above =
      std::lower_bound(samples.begin(), samples.end(), micro_batch,
                       [](const LayerSample& s, int size) { return s.micro_batch < size; });
  if (at_or_above != samples.end() && at_or_above->micro_batch == micro_batch) return *at_or_above;
  // One sample gives no line; the cost is then taken to grow in proportion, as from (0, 0).
  const LayerSample origin;
  const bool alone = samples.size() == 1;
  const auto upper = std::clamp(at_or_above, samples.begin() + (alone ? 0 : 1), samples.end() - 1);
  const LayerSample& a = alone ? origin : *(upper - 1);
  const LayerSample& b = *upper;
  const double share =
      static_cast<double>(micro_batch - a.micro_batch) / (b.micro_batch - a.micro_batch);
  // A steep line may fall below zero where it is extended to small sizes.
  const auto seconds = [&](double LayerSample::*field) {
    return std::max(0.0, a.*field + share * (b.*field - a.*field));
  };
  const auto bytes = [&](std::int64_t LayerSample::*field) {
    const double span = static_cast<double>(b.*field - a.*field);
    const double value = static_cast<double>(a.*field) + share * span;
    return std::max(std::int64_t{0}, static_cast<std::int64_t>(std::ceil(value)));
  };
  return {.micro_batch = micro_batch,
          .forward_s = seconds(&LayerSample::forward_s),
          .backward_s = seconds(&LayerSample::backward_s),
          .forward_spread_s = seconds(&LayerSample::forward_spread_s),
          .backward_spread_s = seconds(&LayerSample::backward_spread_s),
          .saved_bytes = bytes(&LayerSample::saved_bytes),
          .workspace_bytes = bytes(&LayerSample::workspace_bytes)};
}

}  // namespace motley
