// What a run tells monitoring programs. Pure: all of it is in the view already.
// docs/formats/watch.md lists the names, which never change their meaning.
//
// Ranks and links are told apart by their numbers in the plan, machines are in families of infos
// beside them, and no label grows with the steps: a series is of a run, not of a moment in it.
#pragma once

#include <vector>

#include "watch/metrics/exposition.h"
#include "watch/view/run_view.h"

namespace motley {

[[nodiscard]] std::vector<MetricFamily> run_metrics(const RunView& view);

}  // namespace motley
