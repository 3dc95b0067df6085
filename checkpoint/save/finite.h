// Parameters that are not numbers any more.
#pragma once

#include <vector>

#include "base/result.h"
#include "checkpoint/safetensors.h"

namespace motley {

// kDiverged, naming the first tensor that holds an infinity or a NaN and how many it holds. Such
// parameters are never saved: each save would push out a checkpoint that can still be used.
[[nodiscard]] Result<void> require_finite(const std::vector<TensorView>& parameters);

}  // namespace motley
