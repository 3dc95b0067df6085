// The scale of gradients in fp16, found while training: as large as they bear.
//
// Every rank follows the same votes, so all have the same scale without sending it. A step whose
// gradient is not finite is skipped and halves the scale; kStepsToGrow steps in a row that were
// taken double it. As PyTorch's GradScaler, but that the scale is inside of the layers that compute
// in fp16 (models/layers/product_numbers.h), so that a gradient that is not finite is one in fp32
// too.
#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/gradient_scale.h"
#include "job/config.h"

namespace motley {

// Before the first step. Gradients are sums over the tokens of a step, of which a scale of 2^16
// for their mean is as good a start as any.
// REQUIRES: tokens_per_step > 0.
[[nodiscard]] GradientScale first_gradient_scale(std::int64_t tokens_per_step);

// After a step with `scale`. `finite`: its gradient was, and the step was taken.
[[nodiscard]] GradientScale next_gradient_scale(const GradientScale& scale, bool finite);

// With what a session goes on: what `saved` says, a first one, or none where train.precision needs
// none.
[[nodiscard]] std::optional<GradientScale> gradient_scale_of(
    const TrainConfig& train,
    std::int64_t tokens_per_sample,
    const std::optional<GradientScale>& saved);

}  // namespace motley
