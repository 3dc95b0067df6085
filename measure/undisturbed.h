// What a layer takes, of two measurements at different moments.
#pragma once

#include "plan/profile.h"

namespace motley {

// Time by time the mean of the two; where they differ by more than a tenth the shorter one, since
// what disturbs a computer for some seconds makes work longer and never shorter. Bytes are the
// larger ones. REQUIRES: both are of one size, and have the parts of backward or have them not.
[[nodiscard]] LayerSample undisturbed(const LayerSample& first, const LayerSample& again);

}  // namespace motley
