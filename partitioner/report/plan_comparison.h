// A comparison of two plans of one model, as text: before and after a change.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/text/text_table.h"
#include "models/spec/model_spec.h"
#include "plan/plan.h"

namespace motley {

// Tokens or samples a second, as predicted; 0 for a plan without a prediction.
[[nodiscard]] double units_per_s(const Plan& plan, const ModelSpec& model);

// A table: the step, tokens a second, schedule and, for each machine that either plan uses, its
// layers and memory. REQUIRES: both are plans of `model`.
[[nodiscard]] std::string compare_plans(const Plan& before,
                                        const Plan& after,
                                        const ModelSpec& model);
// Its rows. `names`: the column names of the two plans.
[[nodiscard]] std::vector<TextRow> comparison_rows(
    const Plan& before,
    const Plan& after,
    const ModelSpec& model,
    const std::pair<std::string, std::string>& names);

}  // namespace motley
