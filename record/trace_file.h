// Trace files, in the Chrome/Perfetto JSON format: writing, and reading the last recorded step.
// Format: docs/formats/trace.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/trace.h"

namespace motley {

// The text of a trace file: one process per rank (named by rank_names[rank]), one thread per lane.
// The notes list what is missing; without notes the member is omitted.
[[nodiscard]] std::string trace_text(const std::vector<TraceSpan>& spans,
                                     const std::vector<std::string>& rank_names,
                                     const std::vector<std::string>& notes = {});

struct TracedStep {
  int step = 0;
  std::vector<TraceSpan> spans;         // times relative to the first start
  std::vector<std::string> rank_names;  // [Rank]
};

// The spans of the highest step in the text of a trace file. kCorrupt, with line and column, if it
// is invalid or has no span. `source` is named in errors.
[[nodiscard]] Result<TracedStep> last_traced_step(std::string_view text, const std::string& source);

}  // namespace motley
