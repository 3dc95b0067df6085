// GradientScale: where the search for the scale of gradients in fp16 stands
// (training/vote/gradient_scaler.h), as manifests and messages have it.
#pragma once

#include <cstdint>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

struct GradientScale {
  double value = 1;        // a power of two
  std::int64_t steps = 0;  // taken with it in a row

  friend bool operator==(const GradientScale&, const GradientScale&) = default;
};

[[nodiscard]] Json gradient_scale_to_json(const GradientScale& scale);
// kCorrupt where it is no power of two that occurs, or a count is below 0.
[[nodiscard]] Result<GradientScale> gradient_scale_from_json(const Json& json,
                                                             const std::string& source);

}  // namespace motley
