// Stopwatch: what computing on a device takes. On the processor seconds of the calling thread,
// which others do not lengthen; on another device seconds of its own clock, so that neither the
// host's waiting nor, while the device has work, its launching counts. Where a device's events have
// no times (models/device/device_timeline.h), seconds on the clock until it has done all that it
// was given.
#pragma once

#include <memory>
#include <vector>

#include "models/device/compute_device.h"
#include "models/device/device_timeline.h"

namespace motley {

class Stopwatch {
 public:
  explicit Stopwatch(const ComputeDevice& device);

  // Something is over, and something else begins.
  void mark();

  // Of the marks since the last call, in their order: seconds from some moment on, of which only
  // differences mean something. Waits for the device to come to them.
  [[nodiscard]] std::vector<double> read_s();

  // Of a mark that is set now. REQUIRES: none that was not read.
  [[nodiscard]] double read_now_s();

  // Whether marks leave the device its work, so that several may be set before one is read.
  [[nodiscard]] bool runs_beside() const { return timeline_ != nullptr; }

 private:
  const ComputeDevice device_;
  std::unique_ptr<DeviceTimeline> timeline_;
  std::vector<double> marks_s_;  // without a timeline
};

}  // namespace motley
