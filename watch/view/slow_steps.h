// Why steps take longer than planned: a slow machine, or waits. Pure.
#pragma once

#include <optional>

#include "watch/view/run_finding.h"

namespace motley {

// Nothing if they do not, or not persistently.
[[nodiscard]] std::optional<Complaint> why_slow(const JudgedRun& run);

}  // namespace motley
