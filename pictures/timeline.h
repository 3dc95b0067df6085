// Timeline: what every rank and link did when, as a figure. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pictures/figure.h"
#include "plan/trace.h"

namespace motley {

struct TimelineOptions {
  std::string title;
  std::size_t ranks_max = 64;    // the first ones are drawn
  std::size_t spans_max = 8000;  // the longest ones are drawn
  // That the time axis has; 0 = as long as the spans take. Steps beside each other share one.
  double whole_s = 0;
};

// One lane a rank with what it computes, encodes and waits for, and a thinner one below with what
// its links carry. What the caps leave out is said in the figure. rank_names: [Rank].
[[nodiscard]] Figure timeline(const std::vector<TraceSpan>& spans,
                              const std::vector<std::string>& rank_names,
                              const TimelineOptions& options);

// Until when the last of them takes.
[[nodiscard]] double end_of(const std::vector<TraceSpan>& spans);

}  // namespace motley
