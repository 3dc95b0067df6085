// A plan as a figure: one row per rank with its layers, time and memory, the link to the next rank
// between the rows, and a list of all links below. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/text/text_table.h"
#include "figures/figure.h"
#include "partitioner/report/plan_sketch.h"

namespace motley {

inline constexpr std::size_t kRanksDrawnMax = 64;
inline constexpr std::size_t kLinksDrawnMax = 16;

// rank_names: [Rank]. `title`: the figure's title.
[[nodiscard]] Figure plan_figure(const PlanSketch& sketch,
                                 const std::vector<std::string>& rank_names,
                                 const std::string& title);

// The contribution of each machine, from contribution_rows, as lines of text; an empty figure
// without rows.
[[nodiscard]] Figure contribution_figure(const std::vector<TextRow>& rows);

}  // namespace motley
