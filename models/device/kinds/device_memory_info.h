// The memory of a device, and a query that CUDA's runtime and other devices' libraries share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "models/device/kinds/library_symbol.h"

namespace motley {

struct DeviceMemoryInfo {
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
};

// The memory of the current device, by a function with cudaMemGetInfo's arguments; nullopt if no
// open library has it or it fails.
[[nodiscard]] inline std::optional<DeviceMemoryInfo> query_memory_info(const char* question) {
  auto* const ask = library_symbol<int(std::size_t*, std::size_t*)>(question);
  std::size_t free = 0;
  std::size_t total = 0;
  if (ask == nullptr || ask(&free, &total) != 0) return std::nullopt;
  return DeviceMemoryInfo{static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

}  // namespace motley
