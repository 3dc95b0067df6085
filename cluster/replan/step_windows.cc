#include "cluster/replan/step_windows.h"

#include <algorithm>

#include "base/median.h"

namespace motley {

std::optional<RunMeasurement> StepWindows::add(Rank rank, const StepReport& report) {
  RankWindow& own = ranks_[rank.index()];
  if (!own.has_begun) {
    own.has_begun = true;
    return {};
  }
  own.busy_s.push_back(report.times.compute_s);
  own.step_s.push_back(report.step_s);
  own.memory_bytes = std::max(own.memory_bytes, report.memory_bytes);
  const bool is_full = std::ranges::all_of(
      ranks_, [&](const RankWindow& each) { return each.step_s.size() >= window_; });
  if (!is_full) return {};
  RunMeasurement measured;
  for (const RankWindow& each : ranks_) {
    measured.busy_s.push_back(median(each.busy_s));
    measured.peak_bytes.push_back(each.memory_bytes);
    // A step ends with the slowest rank.
    measured.step_s = std::max(measured.step_s, median(each.step_s));
  }
  window_ = std::min(2 * window_, kLongest);
  restart_window();
  return measured;
}

void StepWindows::restart_window() {
  for (RankWindow& each : ranks_) {
    each.busy_s.clear();
    each.step_s.clear();
    each.memory_bytes = 0;
  }
}

}  // namespace motley
