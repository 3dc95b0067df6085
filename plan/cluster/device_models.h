// Common devices by name, for simulated ones: `device_model = "rtx-3060"` in a cluster file. The
// source and accuracy of each figure: docs/devices.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace motley {

struct DeviceModel {
  std::string_view name;
  double gflops = 0;      // sustained in fp32 training, in 10^9 operations per second
  double memory_gib = 0;  // of one device; 0 = sold with various sizes
};

[[nodiscard]] std::span<const DeviceModel> device_models();

// nullptr if there is no such name.
[[nodiscard]] const DeviceModel* find_device_model(std::string_view name);

// The name that was probably meant, or "".
[[nodiscard]] std::string closest_device_model(const std::string& name);

}  // namespace motley
