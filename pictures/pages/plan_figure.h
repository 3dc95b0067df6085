// A plan drawn: one row a rank with its layers, its time and its memory, what joins it to the next
// one between the rows, and below them all links. Pure.
#pragma once

#include <string>
#include <vector>

#include "partitioner/advise/plan_sketch.h"
#include "partitioner/advise/text_table.h"
#include "pictures/figure.h"

namespace motley {

inline constexpr std::size_t kRanksDrawnMax = 64;
inline constexpr std::size_t kLinksDrawnMax = 16;

// rank_names: [Rank]. `title` stands above.
[[nodiscard]] Figure plan_figure(const PlanSketch& sketch,
                                 const std::vector<std::string>& rank_names,
                                 const std::string& title);

// What each machine adds, as worth_rows has it, as lines of text; nothing where there are none.
[[nodiscard]] Figure worth_figure(const std::vector<TextRow>& rows);

}  // namespace motley
