// Why steps take longer than planned: a slow machine, or waits. Pure.
#pragma once

#include <optional>

#include "watch/view/run_finding.h"

namespace motley {

// Nothing if they do not, or not persistently.
[[nodiscard]] std::optional<CostedFinding> explain_slow_steps(const AssessedRun& run);

}  // namespace motley
