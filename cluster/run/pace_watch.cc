#include "cluster/run/pace_watch.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/median.h"

namespace motley {

PaceWatch::PaceWatch(std::vector<std::string> names) {
  for (std::string& name : names) ranks_.push_back({.name = std::move(name)});
}

std::optional<std::string> PaceWatch::add(Rank rank, std::int64_t step, double compute_s) {
  MOTLEY_CHECK(rank.value >= 0 && rank.index() < ranks_.size(), "rank {}", rank.value);
  Pace& pace = ranks_[rank.index()];
  if (pace.steps++ == 0) return std::nullopt;  // it touches all memory for the first time
  pace.last_s.push_back(compute_s);
  if (pace.last_s.size() > kWindow) pace.last_s.pop_front();
  if (pace.last_s.size() < kWindow) return std::nullopt;
  const double now_s = median({pace.last_s.begin(), pace.last_s.end()});
  if (pace.first_s == 0) pace.first_s = now_s;
  const double ratio = now_s / pace.first_s;
  if (!pace.slow && ratio >= kSlower) {
    pace.slow = true;
    return fmt::format(
        "{}: {:.1f} times slower than at the start, computing {:.3g} s a step instead of {:.3g} s "
        "(step {}); if that stays, stop and resume the run, and it is planned anew",
        pace.name, ratio, now_s, pace.first_s, step);
  }
  if (pace.slow && ratio <= kRecovered) {
    pace.slow = false;
    return fmt::format("{}: as fast as at the start again (step {})", pace.name, step);
  }
  return std::nullopt;
}

}  // namespace motley
