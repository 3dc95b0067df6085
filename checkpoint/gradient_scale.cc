#include "checkpoint/gradient_scale.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"

namespace motley {
namespace {

bool is_valid(const GradientScale& scale) {
  int exponent = 0;
  return scale.value >= kLeastGradientScale && scale.value <= kLargestGradientScale &&
         std::frexp(scale.value, &exponent) == 0.5 && scale.steps >= 0 &&
         scale.steps < kStepsToGrow;
}

}  // namespace

Json gradient_scale_to_json(const GradientScale& scale) {
  return {{"value", scale.value}, {"steps", scale.steps}};
}

Result<GradientScale> gradient_scale_from_json(const Json& json, const std::string& source) {
  GradientScale scale;
  MOTLEY_ASSIGN(scale.value, json_get<double>(json, "value", source));
  MOTLEY_ASSIGN(scale.steps, json_get<std::int64_t>(json, "steps", source));
  if (is_valid(scale)) return scale;
  return Error{ErrorCode::kCorrupt, fmt::format("an invalid loss scale, {}", source),
               fmt::format("it is {} since {} steps", scale.value, scale.steps), ""};
}

}  // namespace motley
