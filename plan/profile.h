// Profile: the measurements of devices, as a value. Format: docs/formats/profile.md.
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

// Backward in two parts: the gradient of the input, and the gradients of the weights.
struct SplitBackward {
  double input_s = 0;             // the first part of backward_s
  double weight_s = 0;            // of the second part on its own, after other layers' work
  std::int64_t queued_bytes = 0;  // saved between the two parts

  friend bool operator==(const SplitBackward&, const SplitBackward&) = default;
};

// One kind and shape of layer at one micro-batch size.
struct LayerSample {
  int micro_batch = 0;  // samples
  double forward_s = 0;
  double backward_s = 0;
  double forward_spread_s = 0;  // median absolute deviation
  double backward_spread_s = 0;
  std::int64_t saved_bytes = 0;             // saved from forward to backward
  std::int64_t workspace_bytes = 0;         // additional peak during computation
  std::optional<SplitBackward> split = {};  // if measured

  [[nodiscard]] double backward_input_s() const { return split ? split->input_s : backward_s; }

  [[nodiscard]] double backward_weight_s() const { return split ? split->weight_s : 0; }

  void scale_times(double factor);

  friend bool operator==(const LayerSample&, const LayerSample&) = default;
};

// The cost of a codec on one core of this device, including the work for every payload byte: the
// frame's checksum and the copies between tensor and buffer.
struct CodecSample {
  double bytes_per_float = 4;  // on the wire; for values of a boundary
  double encode_s_per_float = 0;
  double decode_s_per_float = 0;

  friend bool operator==(const CodecSample&, const CodecSample&) = default;
};

struct DeviceProfile {
  std::string machine;
  std::string device;
  std::string computer;  // the machine's computer_id(); "" = unknown
  int threads = 1;
  double cores = 0;                      // usable physical cores, limited by a quota; 0 = unknown
  std::int64_t memory_bytes = 0;         // free memory: the device's own, or the machine's share
  std::int64_t baseline_bytes = 0;       // resident without any layer
  std::string precision = "fp32";        // train.precision of the measured job
  std::string compute_dtype = "fp32";    // dtype of matrix products: `precision`, or "fp32"
  int rounded_bytes_per_parameter = 0;   // of a copy of parameters in that dtype, besides fp32
  double optimizer_s_per_parameter = 0;  // all work of a step per parameter
  std::map<std::string, CodecSample> codecs;  // by Codec::name; "none" is always measured
  double message_s = 0;                       // processor time to send or receive one small message
  // Per value of an all-reduce through shared memory inside a machine, at each end; 0 = unknown, or
  // the values are sent as messages.
  double shared_s_per_float = 0;
  std::map<std::string, std::vector<LayerSample>>
      layers;  // by LayerSpec::signature; ascending size
  // The times were measured while the other devices of its computer computed too, as they will in a
  // group. Alone it takes this share of them; 1 = the same.
  double single_device_factor = 1;
  std::vector<std::string> warnings;  // reasons for doubt, for display

  // Scales all computation times; bytes are unchanged.
  void scale_times(double factor);
};

struct Profile {
  std::vector<DeviceProfile> devices;

  [[nodiscard]] const DeviceProfile* find(const std::string& machine,
                                          const std::string& device) const;
};

// Every device's warnings, each prefixed by machine and device.
[[nodiscard]] std::vector<std::string> warnings_of(const Profile& profile);

[[nodiscard]] Json profile_to_json(const Profile& profile);
// Parses a profile's text. kCorrupt with line and column if it is not JSON, or as
// profile_from_json.
[[nodiscard]] Result<Profile> parse_profile(std::string_view text, const std::string& source);
// kCorrupt if `json` is not a profile of a supported version, or has impossible values.
[[nodiscard]] Result<Profile> profile_from_json(const Json& json, const JsonSource& source);

// The sample at a size that was not measured: on the line through the nearest two samples;
// proportional to the size if there is only one. REQUIRES: at least one sample.
[[nodiscard]] LayerSample interpolate(const std::vector<LayerSample>& samples, int micro_batch);

}  // namespace motley
