// SVG timeline: what every rank and link did when, as one picture that needs no program but a
// browser. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/trace.h"

namespace motley {

struct TimelineOptions {
  std::string title;
  std::size_t ranks_max = 64;    // the first ones are drawn
  std::size_t spans_max = 8000;  // the longest ones are drawn
};

// One lane a rank with what it computes, encodes and waits for, and a thinner one below with what
// its links carry. What the caps leave out is said in the picture. rank_names: [Rank].
[[nodiscard]] std::string svg_timeline(const std::vector<TraceSpan>& spans,
                                       const std::vector<std::string>& rank_names,
                                       const TimelineOptions& options);

}  // namespace motley
