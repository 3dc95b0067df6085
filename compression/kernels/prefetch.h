// Software prefetching. The processor's own prefetching stops at each 4 KiB page, so that loops
// over several slices at once stall there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace motley {

inline constexpr std::size_t kCacheLineFloats = 16;
inline constexpr std::uintptr_t kCacheLineBytes = 64;

// Prefetch distances. Data that is only read is best prefetched early; if lines are also written
// back, so many would be in flight that they delay each other. Each is the best of 0.5 to 16 KiB
// tried.
inline constexpr std::uintptr_t kReadAheadBytes = 4096;
inline constexpr std::uintptr_t kUpdateAheadBytes = 1024;

// Loads the slice into the L1 cache, as far as it fits.
inline void prefetch_values(std::span<const float> values_N) {
  for (std::size_t i = 0; i < values_N.size(); i += kCacheLineFloats) {
    __builtin_prefetch(values_N.data() + i);
  }
}

// Prefetches the `bytes` that are `ahead` after this address. They may be beyond the slice's end: a
// prefetch never faults.
[[gnu::always_inline]] inline void prefetch_ahead(const void* place,
                                                  std::uintptr_t ahead,
                                                  std::uintptr_t bytes) {
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(place) + ahead;
  for (std::uintptr_t line = 0; line < bytes; line += kCacheLineBytes) {
    __builtin_prefetch(reinterpret_cast<const void*>(first + line));
  }
}

}  // namespace motley
