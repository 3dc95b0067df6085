// The numbers that a plan's ranks compute products in, for people.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace motley {

// `numbers` by rank: "bf16"; where they differ "bf16 on desk/cuda:0; fp32 on desk/cpu"; "" where it
// is fp32 on all.
[[nodiscard]] std::string numbers_text(const Plan& plan, const std::vector<std::string>& numbers);

}  // namespace motley
