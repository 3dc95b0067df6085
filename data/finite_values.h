// Checks that all floats of a column are finite: a NaN or an infinity would propagate to every
// gradient of its step, and would only show as skipped steps.
#pragma once

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/files/columns.h"

namespace motley {

// kData with the position of the first value that is not finite, and the number of affected
// samples. `what` is "input" or "target". `work` counts what was read; nullptr: not counted. Skips
// integers.
[[nodiscard]] Result<void> check_finite(const char* what,
                                        const Column& column,
                                        ProgressCounter* work);

}  // namespace motley
