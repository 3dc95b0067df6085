// What there may be to say of a run, as those who look at one side of it find it; run_verdict.cc
// chooses among them. Pure.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/median.h"
#include "watch/view/run_verdict.h"

namespace motley {

// A verdict while the run goes on, and what stays true of it when it has ended.
struct RunFinding {
  RunVerdict verdict;
  std::string lesson;
};

// A finding, and what its reason costs of a step.
struct Complaint {
  double lost_s = 0;
  RunFinding finding;
};

using Steps = std::span<const StepMetrics>;

// The newest, as far as they are looked at for what lasts.
[[nodiscard]] inline Steps lasting_steps(const JudgedRun& run) {
  const Steps all = run.steps;
  return all.last(std::min(all.size(), kLastingSteps));
}

// Not a number where none has one.
template <class Of>
[[nodiscard]] double median_of(Steps steps, const Of& of) {
  std::vector<double> values;
  for (const StepMetrics& step : steps) {
    if (const double value = of(step); std::isfinite(value)) values.push_back(value);
  }
  return values.empty() ? std::nan("") : median(std::move(values));
}

template <class Is>
[[nodiscard]] bool lasts(Steps steps, const Is& is) {
  return static_cast<std::size_t>(std::ranges::count_if(steps, is)) >= kLastingOfThem;
}

[[nodiscard]] inline double median_step_s(Steps steps) {
  return median_of(steps, [](const StepMetrics& step) { return step.step_s; });
}

// Of what costs so much of a step.
[[nodiscard]] inline VerdictLevel level_of(double share_of_step) {
  return share_of_step >= kBad ? VerdictLevel::kBad : VerdictLevel::kWatch;
}

// "+9 %".
[[nodiscard]] inline std::string percent_over(double base, double value) {
  return fmt::format("{:+.0f} %", (value / base - 1) * 100);
}

}  // namespace motley
