// Memory asked for before it is needed. The processor's own prefetching stops at each 4 KiB page,
// so that loops over several slices at once wait there.
#pragma once

#include <cstddef>
#include <span>

namespace motley {

inline constexpr std::size_t kCacheLineFloats = 16;

// Loads the slice into the nearest cache, as far as it fits there.
inline void prefetch_values(std::span<const float> values_N) {
  for (std::size_t i = 0; i < values_N.size(); i += kCacheLineFloats) {
    __builtin_prefetch(values_N.data() + i);
  }
}

}  // namespace motley
