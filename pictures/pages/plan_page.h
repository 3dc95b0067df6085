// A plan as a picture to send to a friend, and as a page. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/advise/plan_analysis.h"
#include "partitioner/advise/planning_input.h"
#include "plan/plan.h"

namespace motley {

struct PlanToShow {
  std::string name;  // of the file that it is of
  const PlanningInput& input;
  const Plan& plan;
  const PlanAnalysis& analysis;         // of both
  std::vector<std::string> rank_names;  // [Rank]
};

// The plan, its simulated step and what each machine adds. kConfig as sketch_plan.
[[nodiscard]] Result<std::string> plan_picture(const PlanToShow& shown);

// The same as a page, with the plan's explanation in words, and beside `other` where there is one.
[[nodiscard]] Result<std::string> plan_page(const PlanToShow& shown,
                                            const std::string& explanation,
                                            const std::optional<PlanToShow>& other);

}  // namespace motley
