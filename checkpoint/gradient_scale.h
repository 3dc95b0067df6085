// GradientScale: where the search for the scale of gradients in fp16 stands
// (training/vote/gradient_scaler.h), as manifests and messages have it.
#pragma once

#include <cstdint>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

// What the search comes to at the least and at the most.
inline constexpr double kLeastGradientScale = 0x1p-40;
inline constexpr double kLargestGradientScale = 0x1p40;
// After so many steps in a row another scale is tried.
inline constexpr std::int64_t kStepsToGrow = 2000;

struct GradientScale {
  double value = 1;        // a power of two
  std::int64_t steps = 0;  // taken with it in a row, fewer than kStepsToGrow

  friend bool operator==(const GradientScale&, const GradientScale&) = default;
};

[[nodiscard]] Json gradient_scale_to_json(const GradientScale& scale);
// kCorrupt for what the search never comes to.
[[nodiscard]] Result<GradientScale> gradient_scale_from_json(const Json& json,
                                                             const std::string& source);

}  // namespace motley
