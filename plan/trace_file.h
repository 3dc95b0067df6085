// Reading a trace back: the last step that a run recorded. Format: docs/formats/trace.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/trace.h"

namespace motley {

struct TracedStep {
  int step = 0;
  std::vector<TraceSpan> spans;         // from the start of the first of them
  std::vector<std::string> rank_names;  // [Rank]
};

// The spans of the highest step in the text of a trace file. kCorrupt, with line and column, where
// it is none or has no span. `source` is named in errors.
[[nodiscard]] Result<TracedStep> last_traced_step(std::string_view text, const std::string& source);

}  // namespace motley
