// DeviceTimeline: when a device came to marks in what its computing stream was given, by the
// device's own clock, told as seconds of now_s().
//
// The host runs ahead of a device, so that its own clock tells when work was given, not when it was
// done. Marks cost no wait: their times are known when the device has come to them. Used by the
// thread that gives the device its work.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "models/device/compute_device.h"
#include "models/device/device_event.h"

namespace motley {

class DeviceTimeline {
 public:
  // Waits for the device. nullptr on the host and where the device's events have no times: with
  // LibTorch before 2.6, or of a kind that never has.
  [[nodiscard]] static std::unique_ptr<DeviceTimeline> make(const ComputeDevice& device);

  // Marks what the device was given so far.
  void mark();

  // The times of marks that the device has come to by now and that were not told yet, in their
  // order. Does not wait.
  [[nodiscard]] std::vector<double> reached();

  // Returns when it has come to all. Throws DeviceStandstill.
  void finish() const;

 private:
  explicit DeviceTimeline(const ComputeDevice& device);

  [[nodiscard]] std::unique_ptr<DeviceEvent> new_mark();

  const ComputeDevice device_;
  std::vector<std::unique_ptr<DeviceEvent>> unused_;  // to be marked again
  std::unique_ptr<DeviceEvent> known_;                // whose time is
  double known_s_ = 0;
  std::deque<std::unique_ptr<DeviceEvent>> marks_;  // after it
};

}  // namespace motley
