#include "training/vote/gradient_scaler.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace motley {
namespace {

constexpr double kOfMean = 0x1p16;

GradientScale begun_with(double value) {
  return {std::clamp(value, kLeastGradientScale, kLargestGradientScale), 0};
}

}  // namespace

GradientScale first_gradient_scale(std::int64_t tokens_per_step) {
  MOTLEY_CHECK(tokens_per_step > 0, "{} tokens", tokens_per_step);
  const auto tokens = std::bit_floor(static_cast<std::uint64_t>(tokens_per_step));
  return begun_with(kOfMean / static_cast<double>(tokens));
}

GradientScale next_gradient_scale(const GradientScale& scale, bool finite) {
  if (!finite) return begun_with(scale.value / 2);
  if (scale.steps + 1 < kStepsToGrow) return {scale.value, scale.steps + 1};
  return begun_with(scale.value * 2);
}

std::optional<GradientScale> gradient_scale_of(const TrainConfig& train,
                                               std::int64_t tokens_per_sample,
                                               const std::optional<GradientScale>& saved) {
  if (train.precision != "fp16") return std::nullopt;
  return saved ? *saved : first_gradient_scale(train.global_batch * tokens_per_sample);
}

}  // namespace motley
