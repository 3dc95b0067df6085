// What a layer takes, of two measurements at different moments.
#pragma once

#include "plan/profile.h"

namespace motley {

// What disturbs a computer for some seconds makes all that is measured meanwhile longer. So where a
// time differs by more than a tenth the shorter one counts, also of what spreads by as much, where
// the longer ones are those that were disturbed; else the mean of the two. A spread goes with its
// time; bytes are the larger ones. REQUIRES: both are of one size, and have the parts of backward
// or have them not.
[[nodiscard]] LayerSample less_disturbed_sample(const LayerSample& first, const LayerSample& again);

}  // namespace motley
