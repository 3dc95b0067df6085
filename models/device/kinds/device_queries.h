// What c10's generic device interfaces do not provide in all versions of LibTorch, by the library
// of a kind of device. All other code uses the generic interfaces.
#pragma once

#include <optional>
#include <string>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include "models/device/kinds/device_memory_info.h"
#include "models/device/kinds/device_problem.h"
#include "plan/device_kinds.h"

namespace motley {

// nullptr = not supported, or not needed. `index`: of an existing device.
struct DeviceQueries {
  // Opens the library that LibTorch needs for it; returns why it could not be opened.
  std::optional<std::string> (*open_library)() = nullptr;
  // Why there is no device, in more detail than DeviceKind::remedy; `said`: why the library could
  // not be opened, "" if it is open.
  DeviceProblem (*unavailable)(const std::string& said) = nullptr;
  // Why nothing would run on it, if that is known in advance.
  std::optional<DeviceProblem> (*problem)(int index) = nullptr;
  // The memory of the current device.
  std::optional<DeviceMemoryInfo> (*memory)() = nullptr;
  // As computes_products_in of models/device/dtype_support.h, for fp16 and bf16; in place of
  // DeviceKind::product_dtypes.
  bool (*computes_products_in)(int index, at::ScalarType type) = nullptr;
  // For messages; "" if unknown: the vendor's name of the device, its capability by the vendor's
  // numbering, what its driver supports, and what LibTorch was built for.
  std::string (*model)(int index) = nullptr;
  std::string (*capability)(int index) = nullptr;
  std::string (*driver)() = nullptr;
  std::string (*build)() = nullptr;
};

[[nodiscard]] const DeviceQueries& queries_of(DeviceLibrary library);

// nullopt if this LibTorch knows no such kind.
[[nodiscard]] std::optional<c10::DeviceType> torch_type_of(const DeviceKind& kind);
// The first kind of that type; nullptr if there is none.
[[nodiscard]] const DeviceKind* find_device_kind(c10::DeviceType type);

struct DeviceCount {
  int count = 0;
  DeviceProblem unavailable;
};

// Opens the kind's library, which stays open, and counts its devices.
[[nodiscard]] DeviceCount count_devices(const DeviceKind& kind);

}  // namespace motley
