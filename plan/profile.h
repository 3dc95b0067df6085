// Profile: what was measured on one machine's device, as a value. Format: docs/formats/profile.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/json_position.h"
#include "base/result.h"

namespace motley {

// Backward in two parts: until the gradient of the input is there, and the rest.
struct SplitBackward {
  double input_s = 0;             // of backward_s
  double weight_s = 0;            // of the rest on its own, after other layers' work
  std::int64_t queued_bytes = 0;  // kept from the one part to the other

  friend bool operator==(const SplitBackward&, const SplitBackward&) = default;
};

// One layer kind and shape at one micro-batch size.
struct LayerSample {
  int micro_batch = 0;  // samples
  double forward_s = 0;
  double backward_s = 0;
  double forward_spread_s = 0;  // median absolute deviation
  double backward_spread_s = 0;
  std::int64_t saved_bytes = 0;             // kept from forward to backward
  std::int64_t workspace_bytes = 0;         // peak beyond that while it computes
  std::optional<SplitBackward> split = {};  // where it was measured

  [[nodiscard]] double backward_input_s() const { return split ? split->input_s : backward_s; }

  [[nodiscard]] double backward_weight_s() const { return split ? split->weight_s : 0; }

  void scale_times(double factor);

  friend bool operator==(const LayerSample&, const LayerSample&) = default;
};

// What a codec costs one core of this device, with what goes with every payload byte on its way:
// the frame's checksum and the copies between tensor and buffer.
struct CodecSample {
  double bytes_per_float = 4;  // on the wire; of values as a boundary carries them
  double encode_s_per_float = 0;
  double decode_s_per_float = 0;

  friend bool operator==(const CodecSample&, const CodecSample&) = default;
};

struct DeviceProfile {
  std::string machine;
  std::string device;
  std::string computer;  // that the machine is, as computer_id(); "" = unknown
  int threads = 1;
  double cores = 0;  // physical ones that the process may use, fewer under a quota; 0 = unknown
  std::int64_t memory_bytes = 0;    // what was free there: the device's own, or the machine's part
  std::int64_t baseline_bytes = 0;  // resident without any layer
  std::string precision = "fp32";   // train.precision of the job that was measured
  std::string numbers = "fp32";     // that products were computed in: of `precision`, or "fp32"
  int rounded_bytes_per_parameter = 0;        // of a copy of parameters for products, beside fp32
  double optimizer_s_per_parameter = 0;       // all that a step does for a parameter
  std::map<std::string, CodecSample> codecs;  // by Codec::name; "none" is always measured
  double message_s = 0;  // a processor's time for sending, or receiving, one small message
  // For a value that ranks of one machine sum through memory that they share, at each end; 0 =
  // unknown, or they send it as it is.
  double shared_s_per_float = 0;
  std::map<std::string, std::vector<LayerSample>>
      layers;  // by LayerSpec::signature; ascending size
  // Its times were measured while the other devices of its computer computed too, as they will in a
  // group. Alone it takes this share of them; 1 = as long.
  double alone_factor = 1;
  std::vector<std::string> warnings;  // why not to trust it, for people

  // Every time of computing; bytes stay.
  void scale_times(double factor);
};

struct Profile {
  std::vector<DeviceProfile> devices;

  [[nodiscard]] const DeviceProfile* find(const std::string& machine,
                                          const std::string& device) const;
};

// Every device's warnings, each with its machine and device before it.
[[nodiscard]] std::vector<std::string> warnings_of(const Profile& profile);

[[nodiscard]] Json profile_to_json(const Profile& profile);
// Reads a profile's text. kCorrupt with line and column when it is not JSON, or as
// profile_from_json.
[[nodiscard]] Result<Profile> parse_profile(std::string_view text, const std::string& source);
// kCorrupt when `json` is not a profile of a version we read, or holds impossible values.
[[nodiscard]] Result<Profile> profile_from_json(const Json& json, const JsonSource& source);

// The sample at a size that was not measured: linear between neighbours, through the origin of
// nothing: the nearest two points define the line. REQUIRES: at least one sample.
[[nodiscard]] LayerSample interpolate(const std::vector<LayerSample>& samples, int micro_batch);

}  // namespace motley
