// Whether all floats of a column are numbers: a NaN or an infinity makes every gradient that it
// comes into one, and would be found only as steps that are skipped.
#pragma once

#include "base/result.h"
#include "base/work_counter.h"
#include "data/files/columns.h"

namespace motley {

// kData, with the place of the first that is not, and how many samples have one. `what` is "input"
// or "target". `work` counts what was read; nullptr: not counted. Integers are not looked at.
[[nodiscard]] Result<void> check_finite(const char* what, const Column& column, WorkCounter* work);

}  // namespace motley
