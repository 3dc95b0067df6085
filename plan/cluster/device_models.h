// Common devices by name, for simulated ones: `device_model = "rtx-3060"` in a cluster file. The
// source and accuracy of each figure: docs/devices.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace motley {

// The dtypes of 16 bits in which a device model computes matrix products, as Motley uses it.
// Processors have bf16 alone, all other devices fp16 at least.
enum class HalfTypes { kNone, kBf16, kFp16, kBf16AndFp16 };

// Rates are sustained over training steps, in 10^9 operations per second.
struct DeviceModel {
  std::string_view name;
  double gflops = 0;       // in fp32
  double half_gflops = 0;  // in any of half_types; 0 = it has none
  HalfTypes half_types = HalfTypes::kNone;
  double memory_gib = 0;  // of one device; 0 = sold with various sizes
};

[[nodiscard]] std::span<const DeviceModel> device_models();

// Whether the model has units for matrix products in "bf16" or "fp16"; always in "fp32".
[[nodiscard]] bool computes_in(const DeviceModel& model, std::string_view precision);

// Whether the values between two products of a layer are in that dtype as well: not on processors
// (docs/numerics.md).
[[nodiscard]] bool rounds_intermediates(const DeviceModel& model, std::string_view precision);

// nullptr if there is no such name.
[[nodiscard]] const DeviceModel* find_device_model(std::string_view name);

// The name that was probably meant, or "". Takes names as their vendors write them, such as "NVIDIA
// GeForce RTX 4070 Ti SUPER".
[[nodiscard]] std::string closest_device_model(const std::string& name);

}  // namespace motley
