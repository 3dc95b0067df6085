// DeviceTimeline: the times at which a device reaches markers in its computing stream, measured by
// the device's clock and converted to seconds of now_s().
//
// The host runs ahead of a device, so the host's clock measures when work was submitted, not when
// it was done. Markers cost no wait: their times are known once the device has reached them. Used
// by the thread that submits the device's work.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "models/device/compute_device.h"
#include "models/device/device_event.h"

namespace motley {

class DeviceTimeline {
 public:
  // Waits for the device. nullptr on the host and if the device's events have no times: with
  // LibTorch before 2.6, or for kinds of devices that never have them.
  [[nodiscard]] static std::unique_ptr<DeviceTimeline> make(const ComputeDevice& device);

  // Marks the work submitted so far.
  void mark();

  // The times of markers that the device has reached and that were not returned before, in order.
  // Does not wait.
  [[nodiscard]] std::vector<double> reached();

  // Waits until all markers are reached. Throws DeviceStall.
  void finish() const;

 private:
  explicit DeviceTimeline(const ComputeDevice& device);

  [[nodiscard]] std::unique_ptr<DeviceEvent> new_timing_event();

  const ComputeDevice device_;
  std::vector<std::unique_ptr<DeviceEvent>> unused_;  // for reuse
  std::unique_ptr<DeviceEvent> known_;                // its time is known_s_
  double known_s_ = 0;
  std::deque<std::unique_ptr<DeviceEvent>> timing_events_;  // after it
};

}  // namespace motley
