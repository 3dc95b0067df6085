#include "cluster/follow/pace_watch.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/median.h"

namespace motley {

PaceWatch::PaceWatch(std::vector<std::string> names) {
  for (std::string& name : names) ranks_.push_back({.name = std::move(name)});
}

std::optional<std::string> PaceWatch::add(Rank rank,
                                          std::int64_t step,
                                          double compute_s,
                                          double at_s) {
  MOTLEY_CHECK(rank.value >= 0 && rank.index() < ranks_.size(), "rank {}", rank.value);
  Pace& pace = ranks_[rank.index()];
  if (pace.steps++ == 0) return std::nullopt;  // it touches all memory for the first time
  pace.last_s.push_back(compute_s);
  if (pace.last_s.size() > kWindow) pace.last_s.pop_front();
  if (pace.last_s.size() < kWindow || pace.told) return std::nullopt;
  const double now_s = median({pace.last_s.begin(), pace.last_s.end()});
  if (pace.first_s == 0) pace.first_s = now_s;
  const double ratio = now_s / pace.first_s;
  if (ratio <= kRecovered) pace.slow_since.reset();
  if (ratio < kSlower) return std::nullopt;
  if (!pace.slow_since) pace.slow_since = {step, at_s};
  const auto [since_step, since_s] = *pace.slow_since;
  if (step - since_step < kLastingSteps || at_s - since_s < kLasting_s) return std::nullopt;
  pace.told = true;
  return fmt::format(
      "{}: {:.1f} times slower than at the start since step {} (straggler), computing {:.3g} s a "
      "step instead of {:.3g} s; end other programs there, or stop and resume the run for a new "
      "plan",
      pace.name, ratio, since_step, now_s, pace.first_s);
}

}  // namespace motley
