// DeviceStall: a device did not finish its work in time. Thrown by the waiting function, since
// LibTorch reports its own failures as exceptions too.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "base/result.h"

namespace motley {

class DeviceStall final : public std::runtime_error {
 public:
  DeviceStall(std::string device, double waited_s)
      : std::runtime_error("device " + device + " stands still"),
        device_(std::move(device)),
        waited_s_(waited_s) {}

  // Its name in cluster files: "cuda:0", "mps".
  [[nodiscard]] const std::string& device() const { return device_; }

  [[nodiscard]] double waited_s() const { return waited_s_; }

  // kInternal; `during` names the work: "forward of micro-batch 3".
  [[nodiscard]] Error error(const std::string& during) const;

 private:
  std::string device_;
  double waited_s_;
};

}  // namespace motley
