// The metrics of a run for monitoring programs. Pure: all values come from the view.
// docs/formats/watch.md lists the names; their meaning never changes.
//
// Labels identify ranks and links by their numbers in the plan; info families map them to machines.
// No label depends on the step, so the number of series does not grow during a run.
#pragma once

#include <vector>

#include "watch/metrics/exposition.h"
#include "watch/view/run_view.h"

namespace motley {

[[nodiscard]] std::vector<MetricFamily> run_metrics(const RunView& view);

}  // namespace motley
