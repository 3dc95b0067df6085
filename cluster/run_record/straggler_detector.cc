#include "cluster/run_record/straggler_detector.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/median.h"

namespace motley {

StragglerDetector::StragglerDetector(std::vector<std::string> names) {
  for (std::string& name : names) ranks_.push_back({.name = std::move(name)});
}

std::optional<std::string> StragglerDetector::add(Rank rank,
                                                  std::int64_t step,
                                                  double compute_s,
                                                  double at_s) {
  MOTLEY_CHECK(rank.value >= 0 && rank.index() < ranks_.size(), "rank {}", rank.value);
  RankProgress& rank_progress = ranks_[rank.index()];
  if (rank_progress.steps++ == 0) return std::nullopt;  // it touches all memory for the first time
  rank_progress.last_s.push_back(compute_s);
  if (rank_progress.last_s.size() > kWindow) rank_progress.last_s.pop_front();
  if (rank_progress.last_s.size() < kWindow || rank_progress.is_reported) return std::nullopt;
  const double now_s = median({rank_progress.last_s.begin(), rank_progress.last_s.end()});
  if (rank_progress.first_s == 0) rank_progress.first_s = now_s;
  const double ratio = now_s / rank_progress.first_s;
  if (ratio <= kRecovered) rank_progress.slow_since.reset();
  if (ratio < kSlower) return std::nullopt;
  if (!rank_progress.slow_since) rank_progress.slow_since = {step, at_s};
  const auto [since_step, since_s] = *rank_progress.slow_since;
  if (step - since_step < kPersistentSteps || at_s - since_s < kPersistent_s) return std::nullopt;
  rank_progress.is_reported = true;
  return fmt::format(
      "{}: {:.1f} times slower than at the start since step {} (straggler), computing {:.3g} s a "
      "step instead of {:.3g} s; end other programs there, or stop and resume the run for a new "
      "plan",
      rank_progress.name, ratio, since_step, now_s, rank_progress.first_s);
}

}  // namespace motley
