// What the library behind "privateuseone:N" is asked, beside what it registers with LibTorch: the
// file that the environment's MOTLEY_DEVICE_LIBRARY names. It may have these functions in C:
//
//   int motley_device_memory(size_t* free, size_t* total)   of the current device; 0 = answered
//   const char* motley_device_types(int index)              that it multiplies matrices of, beside
//                                                           fp32: "bf16 fp16"
//   const char* motley_device_model(int index)              what it is, for people
#pragma once

#include <optional>
#include <string>

#include <c10/core/ScalarType.h>

#include "models/device/kinds/device_room.h"
#include "models/device/kinds/device_trouble.h"

namespace motley {

// Says why it could not be opened, or brings no device.
[[nodiscard]] std::optional<std::string> open_device_library();

// `trouble`: why it could not be opened, "" where it could.
[[nodiscard]] DeviceTrouble device_library_why_none(const std::string& trouble);

// Nothing where the library does not answer.
[[nodiscard]] std::optional<DeviceRoom> device_library_room();
[[nodiscard]] bool device_library_computes_products_in(int index, at::ScalarType type);
[[nodiscard]] std::string device_library_model(int index);

}  // namespace motley
