// Combines two measurements of a layer, taken at different moments, into one.
#pragma once

#include "plan/profile.h"

namespace motley {

// Other load on a machine lasts seconds and lengthens everything measured meanwhile. So for each
// time: if the two differ by more than a tenth, the shorter one is used, even where the spread is
// as large, since the longer runs are then the disturbed ones; else the mean of the two. A spread
// is combined as its time is; of byte counts the larger one is used. REQUIRES: both samples are of
// one micro-batch size, and both or neither have a split backward.
[[nodiscard]] LayerSample less_disturbed_sample(const LayerSample& first, const LayerSample& again);

}  // namespace motley
