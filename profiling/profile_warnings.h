// Warnings about unreliable measurements, as text.
#pragma once

#include <string>
#include <vector>

#include "plan/profile.h"

namespace motley {

// "noisy: forward of gpt2.attn … at 4 samples spread 34 %" for every kind of layer with a spread of
// more than a quarter of its median. Kinds too fast to matter in a step are left out.
[[nodiscard]] std::vector<std::string> noise_warnings(const DeviceProfile& device);

// The warning if one layer took `before` at first and `after` at the end of the measurement; "" if
// the two agree within a fifth.
[[nodiscard]] std::string drift_warning(const LayerSample& before, const LayerSample& after);

}  // namespace motley
