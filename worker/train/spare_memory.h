// How much memory a rank may take for a while, as for copies of what a save has not written yet.
#pragma once

#include <cstdint>

namespace motley {

// Of `free_bytes`, its part of what the machine has left: no more than the plan says that its
// process takes, of which it has `resident_bytes` now. planned_bytes: 0 = the plan does not say, or
// says it of a device's own memory.
[[nodiscard]] std::uint64_t spare_within_plan(std::int64_t free_bytes,
                                              std::int64_t planned_bytes,
                                              std::int64_t resident_bytes);

}  // namespace motley
