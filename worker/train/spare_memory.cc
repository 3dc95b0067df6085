#include "worker/train/spare_memory.h"

#include <algorithm>

namespace motley {

std::uint64_t spare_within_plan(std::int64_t free_bytes,
                                std::int64_t planned_bytes,
                                std::int64_t resident_bytes) {
  const std::int64_t spare =
      planned_bytes == 0 ? free_bytes : std::min(free_bytes, planned_bytes - resident_bytes);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, spare));
}

}  // namespace motley
