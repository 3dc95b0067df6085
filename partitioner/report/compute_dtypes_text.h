// The dtypes of products on a plan's ranks, as text.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace motley {

// `compute_dtypes`: dtypes by rank. "bf16"; if they differ, "bf16 on desk/cuda:0; fp32 on
// desk/cpu"; "" if all are fp32.
[[nodiscard]] std::string compute_dtypes_text(const Plan& plan,
                                              const std::vector<std::string>& compute_dtypes);

}  // namespace motley
