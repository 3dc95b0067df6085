// DeviceKind: all differences between kinds of devices, in one table. All other code uses c10's
// generic device interfaces.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include "models/device/kinds/device_memory_info.h"
#include "models/device/kinds/device_problem.h"

namespace motley {

struct DeviceKind {
  std::string_view name;  // in cluster files, before the number
  c10::DeviceType type;
  bool is_numbered = true;  // a machine may have several
  const char* remedy = "";  // hint if it is missing

  // Functions for what c10 does not provide in all versions. nullptr = not supported, or not
  // needed. `index`: of an existing device.

  // Opens the library that LibTorch needs for it; returns why it could not be opened.
  std::optional<std::string> (*open_library)() = nullptr;
  // Why there is no device, in more detail than `remedy`; `said`: why the library could not be
  // opened, "" if it is open.
  DeviceProblem (*unavailable)(const std::string& said) = nullptr;
  // Why nothing would run on it, if that is known in advance.
  std::optional<DeviceProblem> (*problem)(int index) = nullptr;
  // The memory of the current device.
  std::optional<DeviceMemoryInfo> (*memory)() = nullptr;
  // As computes_products_in of models/device/dtype_support.h, for fp16 and bf16.
  bool (*computes_products_in)(int index, at::ScalarType type) = nullptr;
  // For messages; "" if unknown: the vendor's name of the device, its capability by the vendor's
  // numbering, what its driver supports, and what LibTorch was built for.
  std::string (*model)(int index) = nullptr;
  std::string (*capability)(int index) = nullptr;
  std::string (*driver)() = nullptr;
  std::string (*build)() = nullptr;
};

[[nodiscard]] std::span<const DeviceKind> device_kinds();

// nullptr if it is in no table: the processor, an unknown name.
[[nodiscard]] const DeviceKind* device_kind_of(std::string_view device);
[[nodiscard]] const DeviceKind* device_kind_of(c10::DeviceType type);

// The name of such a device in cluster files.
[[nodiscard]] std::string device_name(const DeviceKind& kind, int index);

struct DeviceCount {
  int count = 0;
  DeviceProblem unavailable;
};

// Opens the kind's library, which stays open, and counts its devices.
[[nodiscard]] DeviceCount count_devices(const DeviceKind& kind);

}  // namespace motley
