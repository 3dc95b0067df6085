// Usual devices by name, for virtual ones: `device_model = "rtx-3060"` in a cluster file.
// What each figure rests on, and how far it may be off: docs/devices.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace motley {

struct DeviceModel {
  std::string_view name;
  double gflops = 0;      // sustained in training at fp32, in 10^9 operations a second
  double memory_gib = 0;  // of one device; 0 = sold with various sizes
};

[[nodiscard]] std::span<const DeviceModel> device_models();

// nullptr when there is none of that name.
[[nodiscard]] const DeviceModel* find_device_model(std::string_view name);

// The name that was probably meant, or "".
[[nodiscard]] std::string closest_device_model(const std::string& name);

}  // namespace motley
