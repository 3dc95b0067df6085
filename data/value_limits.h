// Whether all integers of a column are what the model takes: an index outside of a table would be
// found only when it is used, in the middle of a run.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/work_counter.h"
#include "data/files/columns.h"

namespace motley {

struct ValueLimits {
  std::int64_t limit = 0;  // integers lie from 0 to below it
  std::optional<std::int64_t> ignored;
};

// kData, with the place of the first that is outside. `what` is "input" or "target". `work` counts
// what was read; nullptr: not counted. Floats are not looked at.
[[nodiscard]] Result<void> check_values(const char* what,
                                        const Column& column,
                                        const ValueLimits& limits,
                                        WorkCounter* work);

// kData where every value is the ignored one: nothing could be learned. Floats are not looked at.
[[nodiscard]] Result<void> check_any_target(const Column& targets,
                                            std::optional<std::int64_t> ignored);

}  // namespace motley
