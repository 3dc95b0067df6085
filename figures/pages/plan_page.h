// A plan as a picture and as a page. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/report/plan_analysis.h"
#include "partitioner/report/planning_input.h"
#include "plan/plan.h"

namespace motley {

struct DisplayedPlan {
  std::string name;  // of the plan's file
  const PlanningInput& input;
  const Plan& plan;
  const PlanAnalysis& analysis;         // of `input` and `plan`
  std::vector<std::string> rank_names;  // [Rank]
};

// The plan, its simulated step and the contribution of each machine. kConfig as in sketch_plan.
[[nodiscard]] Result<std::string> plan_picture(const DisplayedPlan& shown);

// The same as a page, with the textual explanation of the plan, and a comparison with `other` if
// there is one.
[[nodiscard]] Result<std::string> plan_page(const DisplayedPlan& shown,
                                            const std::string& explanation,
                                            const std::optional<DisplayedPlan>& other);

}  // namespace motley
