// Timeline: the activities of every rank and link over time, as a figure. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "figures/figure.h"
#include "plan/trace.h"

namespace motley {

struct TimelineOptions {
  std::string title;
  std::size_t ranks_max = 64;    // the first ones are drawn
  std::size_t spans_max = 8000;  // the longest ones are drawn
  // Length of the time axis; 0 = until the last span's end. Adjacent figures of steps share one.
  double whole_s = 0;
};

// One lane per rank with its computing, encoding and waiting, and a thinner one below with its
// links' transfers. The figure states what is left out because of the limits. rank_names: [Rank].
[[nodiscard]] Figure timeline(const std::vector<TraceSpan>& spans,
                              const std::vector<std::string>& rank_names,
                              const TimelineOptions& options);

// The time at which the last span ends; 0 without spans.
[[nodiscard]] double end_of(const std::vector<TraceSpan>& spans);

}  // namespace motley
