// The device that tests of what runs on any device use: the environment's MOTLEY_TEST_DEVICE (and
// MOTLEY_DEVICE_LIBRARY), else the processor.
#pragma once

#include <cstdlib>

#include "models/device/compute_device.h"

namespace motley {

inline ComputeDevice tested_device() {
  static const ComputeDevice device = [] {
    const char* const name = std::getenv("MOTLEY_TEST_DEVICE");
    return ComputeDevice::open(name == nullptr ? "cpu" : name).value();
  }();
  device.use_here();  // which is this thread's affair
  return device;
}

}  // namespace motley
