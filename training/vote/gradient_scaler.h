// Dynamic loss scaling for fp16: the largest gradient scale without overflow.
//
// Every rank computes the scale from the same votes, so it is not sent. A step with a gradient that
// is not finite is skipped and halves the scale; kStepsToGrow updated steps in a row double it.
// Like PyTorch's GradScaler, except that the scale is applied inside the layers that compute in
// fp16 (models/layers/product_dtype.h), so an overflow is visible in the fp32 gradient too.
#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/gradient_scale.h"
#include "run_config/config.h"

namespace motley {

// The scale before the first step. Gradients are sums over the tokens of a step; the initial scale
// corresponds to 2^16 for their mean. REQUIRES: tokens_per_step > 0.
[[nodiscard]] GradientScale first_gradient_scale(std::int64_t tokens_per_step);

// The scale after a step with `scale`. `finite`: its gradient was finite and the step was taken.
[[nodiscard]] GradientScale next_gradient_scale(const GradientScale& scale, bool finite);

// The scale at the start of a session: `saved`, or an initial one, or nullopt if train.precision
// needs none.
[[nodiscard]] std::optional<GradientScale> gradient_scale_of(
    const TrainConfig& train,
    std::int64_t tokens_per_sample,
    const std::optional<GradientScale>& saved);

}  // namespace motley
