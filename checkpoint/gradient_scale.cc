#include "checkpoint/gradient_scale.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"

namespace motley {
namespace {

// Far beyond what any training comes to.
constexpr int kExponentMax = 100;

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::isfinite(value) && std::frexp(value, &exponent) == 0.5 &&
         std::abs(exponent) <= kExponentMax;
}

}  // namespace

Json gradient_scale_to_json(const GradientScale& scale) {
  return {{"value", scale.value}, {"steps", scale.steps}};
}

Result<GradientScale> gradient_scale_from_json(const Json& json, const std::string& source) {
  GradientScale scale;
  MOTLEY_ASSIGN(scale.value, json_get<double>(json, "value", source));
  MOTLEY_ASSIGN(scale.steps, json_get<std::int64_t>(json, "steps", source));
  if (is_power_of_two(scale.value) && scale.steps >= 0) return scale;
  return Error{ErrorCode::kCorrupt, fmt::format("an impossible gradient scale, {}", source),
               fmt::format("it is {} since {} steps", scale.value, scale.steps), ""};
}

}  // namespace motley
