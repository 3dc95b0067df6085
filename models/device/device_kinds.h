// DeviceKind: everything that is particular to a kind of device, in one table. All else goes by
// c10's interfaces for devices in general.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace motley {

struct DeviceRoom {
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
};

struct DeviceKind {
  std::string_view name;  // in cluster files, before the number
  c10::DeviceType type;
  bool is_numbered = true;  // a machine may have several
  const char* remedy = "";  // where it is missing

  // What c10 has no question for in all versions. nullptr = it has none, or nothing is to be done.

  // Opens the library that LibTorch needs for it; says why it could not.
  std::optional<std::string> (*open_library)() = nullptr;
  // Of the current device.
  std::optional<DeviceRoom> (*memory)() = nullptr;
  // As computes_products_in of models/device/number_types.h, of fp16 and bf16. `index` is that of
  // one which is there.
  bool (*computes_products_in)(int index, at::ScalarType type) = nullptr;
};

[[nodiscard]] std::span<const DeviceKind> device_kinds();

// nullptr for what is in no table: the processor, a name that means nothing.
[[nodiscard]] const DeviceKind* device_kind_of(std::string_view device);
[[nodiscard]] const DeviceKind* device_kind_of(c10::DeviceType type);

struct DeviceCount {
  int count = 0;
  std::string why;  // there are none
};

// Opens the kind's library, which stays open, and asks how many there are.
[[nodiscard]] DeviceCount count_devices(const DeviceKind& kind);

}  // namespace motley
