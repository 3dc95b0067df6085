// Why steps take longer than planned: a machine that computes longer, or what is waited for. Pure.
#pragma once

#include <optional>

#include "watch/view/run_finding.h"

namespace motley {

// Nothing where they do not, or not for long enough to say so.
[[nodiscard]] std::optional<Complaint> why_slow(const JudgedRun& run);

}  // namespace motley
