// Stopwatch: the time that computing on a device takes. On the processor, seconds of processor time
// of the calling thread, which other load does not lengthen. On another device, seconds of its own
// clock, so that neither the host's waits nor, while the device has work, its launches count. If a
// device's events have no times (models/device/device_timeline.h), wall-clock seconds until it has
// finished all work.
#pragma once

#include <memory>
#include <vector>

#include "models/device/compute_device.h"
#include "models/device/device_timeline.h"

namespace motley {

class Stopwatch {
 public:
  explicit Stopwatch(const ComputeDevice& device);

  // Marks the end of one part and the beginning of the next.
  void mark();

  // The times of the marks since the last call, in order, in seconds from an arbitrary origin.
  // Waits for the device to reach them.
  [[nodiscard]] std::vector<double> read_s();

  // The time of a mark set now. REQUIRES: no unread mark.
  [[nodiscard]] double read_now_s();

  // Whether marks do not interrupt the device, so that several may be set before one is read.
  [[nodiscard]] bool runs_asynchronously() const { return timeline_ != nullptr; }

 private:
  const ComputeDevice device_;
  std::unique_ptr<DeviceTimeline> timeline_;
  std::vector<double> timestamps_s_;  // without a timeline
};

}  // namespace motley
