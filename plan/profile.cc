#include "plan/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/json.h"
#include "base/json/json_table.h"
#include "plan/group_limits.h"
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

constexpr auto kSeconds = json::quantity(kMeasuredSecondsMax);
constexpr auto kBytes = json::whole(0, kMemoryBytesMax);

constexpr auto kSplitTable = json::table<SplitBackward>(
    json::required("backward_input_s", &SplitBackward::input_s, kSeconds),
    json::required("backward_weight_s", &SplitBackward::weight_s, kSeconds),
    json::required("queued_bytes", &SplitBackward::queued_bytes, kBytes));

Result<void> check_split(const JsonFields& fields, const LayerSample& sample) {
  if (!sample.split || sample.split->input_s <= sample.backward_s) return {};
  return fields.bad("backward_input_s", "it is larger than backward_s, of which it is a part");
}

constexpr auto kSampleTable = json::table<LayerSample>(
    json::required("micro_batch", &LayerSample::micro_batch, json::whole(1, kMicroBatchMax)),
    json::required("forward_s", &LayerSample::forward_s, kSeconds),
    json::required("backward_s", &LayerSample::backward_s, kSeconds),
    json::required("forward_spread_s", &LayerSample::forward_spread_s, kSeconds),
    json::required("backward_spread_s", &LayerSample::backward_spread_s, kSeconds),
    json::required("saved_bytes", &LayerSample::saved_bytes, kBytes),
    json::required("workspace_bytes", &LayerSample::workspace_bytes, kBytes),
    json::part(&LayerSample::split, kSplitTable),
    json::check(check_split));

Result<void> check_sample(const JsonFields& fields,
                          const std::vector<LayerSample>& before,
                          const LayerSample& sample) {
  if (before.empty() || sample.micro_batch > before.back().micro_batch) return {};
  return fields.bad("micro_batch", "the sizes do not ascend");
}

Result<void> check_signature(const JsonFields& samples, const std::string& signature) {
  if (signature.size() <= kSignatureMax) return {};
  return samples.bad("its signature is too long");
}

constexpr auto kCodecTable = json::table<CodecSample>(
    json::required(
        "bytes_per_float", &CodecSample::bytes_per_float, json::quantity(kBytesPerFloatMax)),
    json::check([](const JsonFields& fields, const CodecSample& codec) -> Result<void> {
      if (codec.bytes_per_float == 0) return fields.bad("bytes_per_float", "it is 0");
      return {};
    }),
    json::required("encode_s_per_float", &CodecSample::encode_s_per_float, kSeconds),
    json::required("decode_s_per_float", &CodecSample::decode_s_per_float, kSeconds));

Result<void> check_codec_name(const JsonFields& codec, const std::string& name) {
  if (!name.empty() && name.size() <= kCodecNameMax) return {};
  return codec.bad("an invalid codec name");
}

Result<void> check_device(const JsonFields& fields, const DeviceProfile& device) {
  if (!device.codecs.contains("none")) return fields.bad("codecs", "codec 'none' is missing");
  if (device.single_device_factor == 0) return fields.bad("alone_factor", "it is 0");
  return {};
}

// The dtype of matrix products, if it is not the precision.
struct ComputeDtype : json::NoMember {
  void write(const DeviceProfile& device, Json& object) const {
    if (device.compute_dtype != device.precision) object["numbers"] = device.compute_dtype;
  }

  [[nodiscard]] Result<void> read(const JsonFields& object, DeviceProfile& device) const {
    device.compute_dtype = device.precision;
    if (!object.has("numbers")) return {};
    MOTLEY_ASSIGN(device.compute_dtype, object.one_of("numbers", kProductDtypes));
    return {};
  }
};

constexpr auto kDeviceTable = json::table<DeviceProfile>(
    json::required("machine", &DeviceProfile::machine, json::word(kMachineNameOthers)),
    json::required("device", &DeviceProfile::device, json::word(kDeviceNameOthers)),
    json::required("threads", &DeviceProfile::threads, json::whole(1, kThreadsMax)),
    json::defaulted("cores", &DeviceProfile::cores, json::quantity(kThreadsMax)),
    json::required("memory_bytes", &DeviceProfile::memory_bytes, kBytes),
    json::required("baseline_bytes", &DeviceProfile::baseline_bytes, kBytes),
    json::required(
        "optimizer_s_per_parameter", &DeviceProfile::optimizer_s_per_parameter, kSeconds),
    json::required(
        "codecs", &DeviceProfile::codecs, json::map(kCodecTable, kCodecsMax, check_codec_name)),
    json::required("message_s", &DeviceProfile::message_s, kSeconds),
    json::defaulted("alone_factor", &DeviceProfile::single_device_factor, json::quantity(1)),
    json::check(check_device),
    json::required(
        "layers",
        &DeviceProfile::layers,
        json::map(
            json::list(kSampleTable, 1, kSizesMax, check_sample), kLayerKindsMax, check_signature)),
    json::required("warnings", &DeviceProfile::warnings, json::list(json::text(), 0, kWarningsMax)),
    json::optional("shared_s_per_float", &DeviceProfile::shared_s_per_float, kSeconds),
    json::optional("computer", &DeviceProfile::computer, json::word("-")),
    json::optional("precision", &DeviceProfile::precision, json::one_of(kProductDtypes)),
    ComputeDtype{},
    json::optional("rounded_bytes_per_parameter",
                   &DeviceProfile::rounded_bytes_per_parameter,
                   json::whole(0, sizeof(float))));

Result<void> check_unique(const JsonFields& fields,
                          const std::vector<DeviceProfile>& before,
                          const DeviceProfile& device) {
  const auto is_same = [&](const DeviceProfile& other) {
    return other.machine == device.machine && other.device == device.device;
  };
  if (std::ranges::none_of(before, is_same)) return {};
  return fields.bad(fmt::format("duplicate {}/{}", device.machine, device.device));
}

constexpr auto kProfileTable = json::table<Profile>(
    json::header(kProfileFormat, kProfileVersion),
    json::required(
        "devices", &Profile::devices, json::list(kDeviceTable, 0, kDevicesMax, check_unique)));

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
  return kProfileTable.write(profile);
}

Result<Profile> parse_profile(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  return profile_from_json(json, JsonSource(source, text));
}

Result<Profile> profile_from_json(const Json& json, const JsonSource& source) {
  return kProfileTable.read(JsonFields(json, source, ErrorCode::kCorrupt));
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
