#include "plan/trace.h"

#include <utility>

#include "base/check.h"

namespace motley {

std::size_t trace_spans_max(int rank_count) {
  MOTLEY_CHECK(rank_count >= 1, "{} ranks", rank_count);
  return kTraceSpansMax / static_cast<std::size_t>(rank_count);
}

void TraceRecorder::add(TraceSpan span) {
  if (spans_.size() >= spans_max_) {
    ++left_out_;
  } else {
    spans_.push_back(std::move(span));
  }
}

}  // namespace motley
