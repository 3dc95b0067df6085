// When a measurement is not to be trusted, in words for people.
#pragma once

#include <string>
#include <vector>

#include "plan/profile.h"

namespace motley {

// "noisy: forward of gpt2.attn … at 4 samples spread 34 %" for every kind of layer with a spread of
// more than a quarter of its median. Kinds too quick to weigh in a step are left out.
[[nodiscard]] std::vector<std::string> noise_warnings(const DeviceProfile& device);

// What to say when one layer took `before` first and `after` at the end of the measuring; "" when
// the two agree to a fifth.
[[nodiscard]] std::string drift_warning(const LayerSample& before, const LayerSample& after);

}  // namespace motley
