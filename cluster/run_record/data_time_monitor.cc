#include "cluster/run_record/data_time_monitor.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/median.h"

namespace motley {

DataTimeMonitor::DataTimeMonitor(std::vector<std::string> names) {
  for (std::string& name : names) ranks_.push_back({.name = std::move(name)});
}

std::optional<std::string> DataTimeMonitor::add(Rank rank, double data_s, double step_s) {
  MOTLEY_CHECK(rank.value >= 0 && rank.index() < ranks_.size(), "rank {}", rank.value);
  RankSteps& own = ranks_[rank.index()];
  if (!std::exchange(own.has_begun, true) || own.is_reported) return std::nullopt;
  own.data_s.push_back(data_s);
  own.step_s.push_back(step_s);
  if (own.data_s.size() < kWindow) return std::nullopt;
  const double read_s = median(std::exchange(own.data_s, {}));
  const double whole_s = median(std::exchange(own.step_s, {}));
  if (!(whole_s > 0) || read_s < kShare * whole_s) return std::nullopt;
  own.is_reported = true;
  return fmt::format(
      "{}: the training waits for its data: reading samples takes {:.0f} % of a step ({:.3g} of "
      "{:.3g} s); a faster disk or machine for the first layers, or data.augment with fewer "
      "changes, makes it faster",
      own.name, read_s / whole_s * 100, read_s, whole_s);
}

}  // namespace motley
