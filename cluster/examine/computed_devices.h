// Virtual devices that need no worker of their own to be profiled: their layers are computed from
// the cluster file, and what their processor takes for codecs and messages is the same for all
// that are started in one way, so that one worker measures it for all of these.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "job/config.h"
#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/profile.h"

namespace motley {

// Whether what a worker measures of the one's processor holds for the other's. REQUIRES: the
// devices of both are virtual.
[[nodiscard]] bool are_started_alike(const Machine& one, const Machine& other);

struct ComputedDevice {
  DeviceProfile profile;   // what the cluster file says: layers, optimizer, memory
  std::size_t worker = 0;  // that measures its processor
};

// The part of its profile that is not measured, as its own worker would have it.
[[nodiscard]] DeviceProfile computed_part(const Machine& machine,
                                          const std::string& device,
                                          const ModelSpec& model,
                                          const TrainConfig& train,
                                          const std::vector<int>& sizes);

// Takes what is measured from the profile of a virtual device that is started alike.
[[nodiscard]] DeviceProfile with_measured_part(DeviceProfile computed,
                                               const DeviceProfile& measured);

}  // namespace motley
