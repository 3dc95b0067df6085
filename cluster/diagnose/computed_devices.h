// Simulated devices that need no profiling worker of their own. Their layer times are computed from
// the cluster file. The processor's costs of codecs and messages are the same for all that are
// started in the same way, so one worker measures them for all of these.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/profile.h"
#include "run_config/config.h"

namespace motley {

// Whether one machine's processor measurements hold for the other. REQUIRES: the devices of both
// are simulated.
[[nodiscard]] bool are_started_alike(const Machine& one, const Machine& other);

struct ComputedDevice {
  DeviceProfile profile;   // from the cluster file: layers, optimizer, memory
  std::size_t worker = 0;  // measures its processor costs
};

// The computed part of the device's profile, equal to that of a worker of its own.
[[nodiscard]] DeviceProfile computed_part(const Machine& machine,
                                          const std::string& device,
                                          const ModelSpec& model,
                                          const TrainConfig& train,
                                          const std::vector<int>& sizes);

// Adds the measured part, from the profile of a simulated device that is started in the same way.
[[nodiscard]] DeviceProfile with_measured_part(DeviceProfile computed,
                                               const DeviceProfile& measured);

}  // namespace motley
