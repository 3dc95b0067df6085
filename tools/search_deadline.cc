#include "tools/search_deadline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/clock.h"

namespace motley {

SearchDeadline::SearchDeadline(double seconds)
    : start_s_(now_s()),
      limit_s_(seconds),
      told_s_(0),
      step_s_(std::numeric_limits<double>::infinity()) {}

bool SearchDeadline::goes_on(double step_s) {
  constexpr double kTellEvery_s = 1;
  step_s_ = std::min(step_s_, step_s);
  const double taken_s = now_s() - start_s_;
  if (taken_s >= limit_s_) return false;
  if (taken_s >= told_s_ + kTellEvery_s) {
    told_s_ = taken_s;
    const std::string best =
        std::isinf(step_s_) ? "" : fmt::format(", a step of {:.4g} s so far", step_s_);
    std::fputs(
        fmt::format("planning: {:.0f} of at most {:g} s (--seconds){}\n", taken_s, limit_s_, best)
            .c_str(),
        stderr);
  }
  return true;
}

}  // namespace motley
