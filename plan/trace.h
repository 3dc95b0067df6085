// Traces in the Chrome/Perfetto JSON format; simulated and real runs write the same.
// Format: docs/formats/trace.md.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

struct TraceSpan {
  Rank rank;
  std::string lane;  // "compute", "codec", "wait", "link to 1"
  std::string name;  // action text, "F0.3"
  double start_s = 0;
  double duration_s = 0;
  int step = 0;
};

// One process a rank (named by rank_names[rank]), one thread a lane.
[[nodiscard]] Json trace_to_json(const std::vector<TraceSpan>& spans,
                                 const std::vector<std::string>& rank_names);

}  // namespace motley
