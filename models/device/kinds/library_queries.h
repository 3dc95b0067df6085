// Queries of the library behind "privateuseone:N", beyond what it registers with LibTorch. The
// environment's MOTLEY_DEVICE_LIBRARY names its file. It may have these C functions:
//
//   int motley_device_memory(size_t* free, size_t* total)   of the current device; 0 = success
//   const char* motley_device_types(int index)              dtypes of its matrix products, besides
//                                                           fp32: "bf16 fp16"
//   const char* motley_device_model(int index)              its model, for messages
#pragma once

#include <optional>
#include <string>

#include <c10/core/ScalarType.h>

#include "models/device/kinds/device_memory_info.h"
#include "models/device/kinds/device_problem.h"

namespace motley {

// Returns why it could not be opened, or why it provides no device.
[[nodiscard]] std::optional<std::string> open_device_library();

// `problem`: why it could not be opened, "" if it is open.
[[nodiscard]] DeviceProblem device_library_unavailable(const std::string& problem);

// nullopt if the library does not report it.
[[nodiscard]] std::optional<DeviceMemoryInfo> device_library_memory_info();
[[nodiscard]] bool device_library_computes_products_in(int index, at::ScalarType type);
[[nodiscard]] std::string device_library_model(int index);

}  // namespace motley
