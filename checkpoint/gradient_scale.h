// GradientScale: the state of the search for the fp16 gradient scale
// (training/vote/gradient_scaler.h), in manifests and messages.
#pragma once

#include <cstdint>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

// The range of the search.
inline constexpr double kLeastGradientScale = 0x1p-40;
inline constexpr double kLargestGradientScale = 0x1p40;
// After this many steps in a row a larger scale is tried.
inline constexpr std::int64_t kStepsToGrow = 2000;

struct GradientScale {
  double value = 1;        // a power of two
  std::int64_t steps = 0;  // taken with it in a row, fewer than kStepsToGrow

  friend bool operator==(const GradientScale&, const GradientScale&) = default;
};

[[nodiscard]] Json gradient_scale_to_json(const GradientScale& scale);
// kCorrupt for a state that the search never reaches.
[[nodiscard]] Result<GradientScale> gradient_scale_from_json(const Json& json,
                                                             const std::string& source);

}  // namespace motley
