// The memory that a rank may use temporarily, for example for copies of what a save has not written
// yet.
#pragma once

#include <cstdint>

namespace motley {

// The rank's share `free_bytes` of the machine's free memory, limited by the plan: its process may
// grow from `resident_bytes` to `planned_bytes`. planned_bytes: 0 = unknown, or the plan's number
// is of device memory.
[[nodiscard]] std::uint64_t spare_within_plan(std::int64_t free_bytes,
                                              std::int64_t planned_bytes,
                                              std::int64_t resident_bytes);

}  // namespace motley
