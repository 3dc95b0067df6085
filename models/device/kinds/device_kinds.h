// DeviceKind: everything that is particular to a kind of device, in one table. All else goes by
// c10's interfaces for devices in general.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include "models/device/kinds/device_room.h"
#include "models/device/kinds/device_trouble.h"

namespace motley {

struct DeviceKind {
  std::string_view name;  // in cluster files, before the number
  c10::DeviceType type;
  bool is_numbered = true;  // a machine may have several
  const char* remedy = "";  // where it is missing

  // What c10 has no question for in all versions. nullptr = it has none, or nothing is to be done.
  // `index` is that of one which is there.

  // Opens the library that LibTorch needs for it; says why it could not.
  std::optional<std::string> (*open_library)() = nullptr;
  // Why there is none, in more words than `remedy`; `said`: why the library could not be opened, ""
  // where it could.
  DeviceTrouble (*why_none)(const std::string& said) = nullptr;
  // Why nothing would run on it, as far as that can be known beforehand.
  std::optional<DeviceTrouble> (*trouble)(int index) = nullptr;
  // Of the current device.
  std::optional<DeviceRoom> (*memory)() = nullptr;
  // As computes_products_in of models/device/number_types.h, of fp16 and bf16.
  bool (*computes_products_in)(int index, at::ScalarType type) = nullptr;
  // For people, "" where nobody tells: what its maker calls it, what it is capable of by its
  // maker's count, what its driver serves, and what LibTorch's build is for.
  std::string (*model)(int index) = nullptr;
  std::string (*capability)(int index) = nullptr;
  std::string (*driver)() = nullptr;
  std::string (*build)() = nullptr;
};

[[nodiscard]] std::span<const DeviceKind> device_kinds();

// nullptr for what is in no table: the processor, a name that means nothing.
[[nodiscard]] const DeviceKind* device_kind_of(std::string_view device);
[[nodiscard]] const DeviceKind* device_kind_of(c10::DeviceType type);

// The name in cluster files of one of them.
[[nodiscard]] std::string device_name(const DeviceKind& kind, int index);

struct DeviceCount {
  int count = 0;
  DeviceTrouble why_none;
};

// Opens the kind's library, which stays open, and asks how many there are.
[[nodiscard]] DeviceCount count_devices(const DeviceKind& kind);

}  // namespace motley
