// DeviceStageClock: the stage clock of a rank that computes on a device.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "models/device/device_timeline.h"
#include "pipeline/execute/stage_clock.h"

namespace motley {

class DeviceStageClock final : public StageClock {
 public:
  explicit DeviceStageClock(std::unique_ptr<DeviceTimeline> timeline)
      : timeline_(std::move(timeline)) {}

  void begin() override { timeline_->mark(); }

  void mark(double /*waited_s*/) override { timeline_->mark(); }

  [[nodiscard]] std::vector<double> reached() override { return timeline_->reached(); }

  // Throws DeviceStall.
  void finish() override { timeline_->finish(); }

 private:
  const std::unique_ptr<DeviceTimeline> timeline_;
};

// nullptr if the host's clock must be used: on the host, and for devices whose events have no times
// (models/device/device_timeline.h). There, spans start when work is submitted.
[[nodiscard]] inline std::unique_ptr<StageClock> stage_clock_of(const ComputeDevice& device) {
  auto timeline = DeviceTimeline::make(device);
  if (timeline == nullptr) return nullptr;
  return std::make_unique<DeviceStageClock>(std::move(timeline));
}

}  // namespace motley
