#include "partitioner/advise/scaled_profile.h"

#include "base/check.h"

namespace motley {

DeviceProfile with_times_scaled(DeviceProfile device, double factor) {
  MOTLEY_CHECK(factor > 0, "times cannot be scaled by {}", factor);
  device.optimizer_s_per_parameter *= factor;
  device.message_s *= factor;
  for (auto& [name, codec] : device.codecs) {
    codec.encode_s_per_float *= factor;
    codec.decode_s_per_float *= factor;
  }
  for (auto& [signature, samples] : device.layers) {
    for (LayerSample& sample : samples) sample.scale_times(factor);
  }
  return device;
}

}  // namespace motley
