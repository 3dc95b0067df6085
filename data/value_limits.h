// Checks that all integers of a column are in the model's range: an index outside a table would
// otherwise only be detected when it is used, in the middle of a run.
#pragma once

#include <cstdint>
#include <optional>

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/files/columns.h"

namespace motley {

struct ValueLimits {
  // Integers must be from 0 to below it; without one, any that 32 bits represent.
  std::optional<std::int64_t> limit;
  std::optional<std::int64_t> ignored;
};

// kData with the position of the first value outside. `what` is "input" or "target". `work` counts
// what was read; nullptr: not counted. Skips floats.
[[nodiscard]] Result<void> check_values(const char* what,
                                        const Column& column,
                                        const ValueLimits& limits,
                                        ProgressCounter* work);

// kData if every value is the ignored one: nothing could be learned. Skips floats.
[[nodiscard]] Result<void> check_any_target(const Column& targets,
                                            std::optional<std::int64_t> ignored);

}  // namespace motley
