#include "models/device/device_timeline.h"

#include <exception>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/clock.h"

namespace motley {

std::unique_ptr<DeviceTimeline> DeviceTimeline::make(const ComputeDevice& device) {
  if (device.is_host()) return nullptr;
  device.finish();
  std::unique_ptr<DeviceTimeline> timeline(new DeviceTimeline(device));
  try {
    [[maybe_unused]] const double known_s = timeline->known_->seconds_to(*timeline->known_);
  } catch (const std::exception&) {
    return nullptr;  // its events have no times
  }
  return timeline;
}

// The device is idle, so it reaches the marker at once.
DeviceTimeline::DeviceTimeline(const ComputeDevice& device)
    : device_(device), known_(new_timing_event()) {
  known_->wait(device.stall_timeout_s());
  known_s_ = now_s();
}

std::unique_ptr<DeviceEvent> DeviceTimeline::new_timing_event() {
  if (unused_.empty()) {
    const c10::impl::VirtualGuardImpl guard(device_.torch().type());
    return std::make_unique<DeviceEvent>(guard.getStream(device_.torch()),
                                         DeviceEvent::Kind::kTimed);
  }
  std::unique_ptr<DeviceEvent> mark = std::move(unused_.back());
  unused_.pop_back();
  mark->record_again();
  return mark;
}

void DeviceTimeline::mark() {
  timing_events_.push_back(new_timing_event());
}

std::vector<double> DeviceTimeline::reached() {
  std::vector<double> times_s;
  const double before_s = known_s_;
  std::unique_ptr<DeviceEvent> before = std::move(known_);
  // All relative to one marker: successive differences would accumulate rounding errors.
  while (!timing_events_.empty() && timing_events_.front()->is_done()) {
    if (known_ != nullptr) unused_.push_back(std::move(known_));
    known_ = std::move(timing_events_.front());
    timing_events_.pop_front();
    known_s_ = before_s + before->seconds_to(*known_);
    times_s.push_back(known_s_);
  }
  if (known_ == nullptr) {
    known_ = std::move(before);
  } else {
    unused_.push_back(std::move(before));
  }
  return times_s;
}

void DeviceTimeline::finish() const {
  if (!timing_events_.empty()) timing_events_.back()->wait(device_.stall_timeout_s());
}

}  // namespace motley
