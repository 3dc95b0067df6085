// What a layer takes, of two measurements at different moments.
#pragma once

#include "plan/profile.h"

namespace motley {

// What disturbs a computer for some seconds makes all that is measured meanwhile longer. So where a
// time differs by more than a tenth, and by more than both spread, the shorter one counts, else the
// mean of the two. `again_runs`: of which the second is a median; so few that they tell little of
// themselves (less than kManyRuns) count only where they are shorter by a fifth. A spread goes
// with its time; bytes are the larger ones. REQUIRES: both are of one size, and have the parts of
// backward or have them not.
[[nodiscard]] LayerSample undisturbed(const LayerSample& first,
                                      const LayerSample& again,
                                      int again_runs);

inline constexpr int kManyRuns = 6;

}  // namespace motley
