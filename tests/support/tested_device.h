// The device of tests that run on any device: the environment's MOTLEY_TEST_DEVICE (and
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
  device.make_current();  // the current device is per thread
  return device;
}

}  // namespace motley
