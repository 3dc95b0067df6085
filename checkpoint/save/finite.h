// A check that parameters are finite.
#pragma once

#include <vector>

#include "base/result.h"
#include "checkpoint/safetensors.h"

namespace motley {

// kDiverged, naming the first tensor with an infinity or a NaN and their number. Such parameters
// are never saved: each save would evict a usable checkpoint.
[[nodiscard]] Result<void> require_finite(const std::vector<TensorView>& parameters);

}  // namespace motley
