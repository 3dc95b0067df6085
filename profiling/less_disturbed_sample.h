// Combines two measurements of a layer at different moments into one.
#pragma once

#include "plan/profile.h"

namespace motley {

// Other load on a machine lasts seconds and lengthens everything measured meanwhile. So for each
// time: if the two differ by more than a tenth, the shorter one is used, even if its spread is as
// large, because the longer runs are then the disturbed ones; otherwise their mean. A spread is
// combined as its time is; of byte counts the larger one is used. REQUIRES: both samples have the
// same micro-batch size, and both or neither have a split backward.
[[nodiscard]] LayerSample less_disturbed_sample(const LayerSample& first, const LayerSample& again);

}  // namespace motley
