// Memory asked for before it is needed. The processor's own prefetching stops at each 4 KiB page,
// so that loops over several slices at once wait there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

inline constexpr std::size_t kCacheLineFloats = 16;
inline constexpr std::uintptr_t kCacheLineBytes = 64;

// How far ahead loops ask. What is only read is best asked for early; where lines are written back
// too, as many would be in flight that they wait for each other. The best of 0.5 to 16 KiB that
// were tried, each.
inline constexpr std::uintptr_t kReadAheadBytes = 4096;
inline constexpr std::uintptr_t kUpdateAheadBytes = 1024;

// Loads the slice into the nearest cache, as far as it fits there.
inline void prefetch_values(std::span<const float> values_N) {
  for (std::size_t i = 0; i < values_N.size(); i += kCacheLineFloats) {
    __builtin_prefetch(values_N.data() + i);
  }
}

// Asks for the `bytes` that are `ahead` behind this place. They may be behind the slice's end: a
// hint never faults.
[[gnu::always_inline]] inline void prefetch_ahead(const void* place,
                                                  std::uintptr_t ahead,
                                                  std::uintptr_t bytes) {
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(place) + ahead;
  for (std::uintptr_t line = 0; line < bytes; line += kCacheLineBytes) {
    __builtin_prefetch(reinterpret_cast<const void*>(first + line));
  }
}

}  // namespace motley
