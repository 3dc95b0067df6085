#include "tools/planning/search_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

namespace motley {

SearchBudget::SearchBudget(std::optional<double> seconds, Clock clock)
    : seconds_(seconds),
      clock_(std::move(clock)),
      start_s_(clock_()),
      told_s_(0),
      step_s_(std::numeric_limits<double>::infinity()) {}

bool SearchBudget::goes_on(double step_s) {
  constexpr double kTellEvery_s = 1;
  step_s_ = std::min(step_s_, step_s);
  const double taken_s = clock_() - start_s_;
  if (is_spent(taken_s)) return false;
  if (taken_s >= told_s_ + kTellEvery_s) {
    told_s_ = taken_s;
    tell(taken_s);
  }
  return true;
}

bool SearchBudget::is_spent(double taken_s) const {
  return seconds_ ? taken_s >= *seconds_ : work_ >= kWorkMax;
}

void SearchBudget::tell(double taken_s) const {
  const std::string most =
      seconds_ ? fmt::format("of at most {:g} s (--seconds)", *seconds_)
               : fmt::format("s, at most {:.0f} % of the work done",
                             100.0 * static_cast<double>(work_) / static_cast<double>(kWorkMax));
  const std::string best =
      std::isinf(step_s_) ? "" : fmt::format(", a step of {:.4g} s so far", step_s_);
  std::fputs(fmt::format("planning: {:.0f} {}{}\n", taken_s, most, best).c_str(), stderr);
}

}  // namespace motley
