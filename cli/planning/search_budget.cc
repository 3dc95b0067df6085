#include "cli/planning/search_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace motley {

SearchBudget::SearchBudget(std::optional<double> seconds, Clock clock, ProgressLine* line)
    : seconds_(seconds),
      clock_(std::move(clock)),
      line_(line),
      start_s_(clock_()),
      reported_s_(0),
      step_s_(std::numeric_limits<double>::infinity()) {}

bool SearchBudget::may_continue(double step_s) {
  constexpr double kLogInterval_s = 0.2;
  step_s_ = std::min(step_s_, step_s);
  const double taken_s = clock_() - start_s_;
  if (is_spent(taken_s)) return false;
  if (line_ != nullptr && taken_s >= reported_s_ + kLogInterval_s) {
    reported_s_ = taken_s;
    line_->say(words());
  }
  return true;
}

bool SearchBudget::is_spent(double taken_s) const {
  return seconds_ ? taken_s >= *seconds_ : work_ >= kWorkMax;
}

std::string SearchBudget::words() const {
  const std::string most =
      seconds_ ? fmt::format("at most {:g} s (--seconds)", *seconds_)
               : fmt::format("at most {:.0f} % of the work limit",
                             100.0 * static_cast<double>(work_) / static_cast<double>(kWorkMax));
  return "planning: " + most +
         (std::isinf(step_s_) ? "" : fmt::format(", a step of {:.4g} s so far", step_s_));
}

}  // namespace motley
