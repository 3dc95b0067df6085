// Spans of a rank's trace as they travel from the worker to the launcher.
#pragma once

#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "plan/trace.h"

namespace motley {

[[nodiscard]] Json spans_to_json(const std::vector<TraceSpan>& spans);
// The rank is the sender's, whatever the message says.
[[nodiscard]] Result<std::vector<TraceSpan>> spans_from_json(const Json& json, Rank sender);

}  // namespace motley
